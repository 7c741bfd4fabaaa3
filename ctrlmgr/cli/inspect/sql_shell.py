"""Implements the interactive shell of `ctrlmgr sql`, with completion and a history of queries.

Guarantees: an invalid query or Ctrl-C ends that query, not the shell; Ctrl-D ends the shell. A command of the shell
that is not SQL starts with a dot.
"""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from ctrlmgr.cli.inspect import sql_statements
from ctrlmgr.cli.output import answers
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.inspection import custom_views
from ctrlmgr.inspection.database import Database, Rows
from ctrlmgr.inspection.queries import questions
from ctrlmgr.logging import escape

_HELP = """\
A query ends with a semicolon. The connection is read-only.
  .list                     list the ready-made queries
  .ask NAME [PARAM=VALUE]…  run one of them
  .views [NAME]             list the views and tables, or the columns of one
  .output table|json|csv    set the output format
  .quit                     leave (as Ctrl-D)"""
_WORDS = (
    *("SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "AS", "JOIN", "LEFT", "ON"),
    *("GROUP", "BY", "HAVING", "ORDER", "DESC", "LIMIT", "DISTINCT", "CASE", "WHEN", "THEN", "ELSE", "END", "WITH"),
    *("UNION", "ALL", "count(", "max(", "min(", "sum(", "avg(", "objects_at("),
)
_COMMANDS = (".ask", ".help", ".list", ".output", ".quit", ".views")


class Shell:
    """Executes the lines that a user types: SQL, and commands that start with a dot."""

    def __init__(self, database: Database, output: str) -> None:
        """Create a shell for `database`.

        Results are printed in the format `output` until the user changes the format.
        """
        self._database = database
        self._output = output
        self._unfinished = ""
        custom = {name: [*view.columns] for name, view in custom_views.views(database).items()}
        self._relations = database.relations() | custom
        self._names = sorted({*self._relations, *(name for names in self._relations.values() for name in names)})

    @property
    def prompt(self) -> str:
        """The prompt of the next line; the prompt shows whether the line continues a query or starts a new query."""
        return "   ...> " if self._unfinished else "ctrlmgr> "

    def handle(self, line: str) -> bool:
        """Handle a line of input; return False if the line ends the shell."""
        if not self._unfinished and line.lstrip().startswith("."):
            return self._command(line)
        self._unfinished += line + "\n"
        if not sql_statements.meaningful(self._unfinished):
            self._unfinished = ""
        elif sqlite3.complete_statement(self._unfinished):
            text, self._unfinished = self._unfinished, ""
            for statement in sql_statements.statements(text):
                self._try(partial(self._query, statement))
        return True

    def _query(self, statement: str) -> None:
        answers.write(custom_views.query(self._database, statement), self._output)

    def forget(self) -> None:
        """Discard the query that the user has not finished yet."""
        self._unfinished = ""

    def complete(self, text: str, number: int) -> str | None:
        """Return the `number`-th completion of `text`, from 0; None if there are fewer completions (see readline)."""
        words = _COMMANDS if text.startswith(".") else (*self._names, *questions(), *_WORDS)
        found = sorted({word for word in words if word.lower().startswith(text.lower())})
        return found[number] if number < len(found) else None

    def _command(self, line: str) -> bool:
        try:
            name, *arguments = shlex.split(line)
        except ValueError as error:
            name, arguments = str(error), []
        match name, arguments:
            case ((".quit" | ".exit"), _):
                return False
            case ".list", []:
                rows: list[tuple[str, ...]] = [(each.usage, each.description) for each in questions().values()]
                answers.write(Rows(("query", "result"), rows), "table")
            case ".ask", [question, *parameters]:
                self._try(lambda: sql_statements.ask(self._database, question, tuple(parameters), self._output))
            case ".views", []:
                relations: list[tuple[str, ...]] = [(each, ", ".join(of)) for each, of in self._relations.items()]
                answers.write(Rows(("name", "columns"), relations), "table")
            case ".views", [relation] if relation in self._relations:
                answers.write(Rows(("column",), [(each,) for each in self._relations[relation]]), "table")
            case ".output", [output] if output in answers.FORMATS:
                self._output = output
            case _:
                click.echo(_HELP)
        return True

    def _try(self, answer: Callable[[], None]) -> None:
        try:
            answer()
        except click.ClickException as error:
            click.echo(f"error: {escape(error.format_message())}", err=True)
        except CtrlmgrError as error:
            click.echo(f"error: {escape(str(error))}", err=True)


def run_shell(shell: Shell, history: Path | None) -> None:
    """Read lines with readline until the end of the input.

    `history` is the file that stores the lines of earlier sessions.
    """
    import readline

    readline.set_completer(shell.complete)
    readline.set_completer_delims(" \t\n,()=<>;'\"")
    readline.parse_and_bind("tab: complete")
    if history and history.exists():
        readline.read_history_file(history)
    click.echo("Type SQL; .help for help, .list for ready-made queries, Ctrl-D to leave.")
    try:
        _read(shell)
    finally:
        if history:
            readline.set_history_length(1000)
            readline.write_history_file(history)


def _read(shell: Shell) -> None:
    while True:
        try:
            if not shell.handle(input(shell.prompt)):
                return
        except KeyboardInterrupt:
            shell.forget()
            click.echo()
        except EOFError:
            click.echo()
            return

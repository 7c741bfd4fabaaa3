"""`ctrlmgr sql`: queries the log with SQL or with ready-made queries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from ctrlmgr.cli import completion
from ctrlmgr.cli.inspect import sql_statements
from ctrlmgr.cli.inspect.remote_log import is_copy, takes_log
from ctrlmgr.cli.options import configure_logging, output_option
from ctrlmgr.encryption import providers_from
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.inspection.database import Database


@click.command(short_help="Query the log with SQL, read-only.")
@click.argument("question", metavar="[QUERY_NAME]", required=False, shell_complete=completion.questions)
@click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]...", shell_complete=completion.question_parameters)
@takes_log
@click.option("-c", "--command", "query", metavar="QUERY", help="Run this SQL query and exit.")
@click.option(
    "-f",
    "--file",
    type=click.File("r", encoding="utf-8"),
    metavar="FILE",
    help="Run the SQL queries in this file; - is stdin.",
)
@click.option("--audit", is_flag=True, help="Query the audited requests (table `requests`) instead of the log.")
@click.option("--list", "listed", is_flag=True, help="List the ready-made queries.")
@click.option("--datasette", is_flag=True, help="Print metadata of this log for Datasette (its option -m), as JSON.")
@output_option("table", "json", "csv")
def sql(
    loaded: Loaded,
    question: str | None,
    parameters: tuple[str, ...],
    query: str | None,
    file: TextIO | None,
    audit: bool,
    listed: bool,
    datasette: bool,
    output: str,
) -> None:
    """Query the log with the ready-made query QUERY_NAME, with an SQL statement, or in an interactive shell.

    docs/sql.md describes the views and the ready-made queries. The connection to the database is read-only. The
    function `objects_at(REVISION)` returns the objects that existed at a revision.

    \b
    ctrlmgr sql --list
    ctrlmgr sql hot_objects limit=5
    ctrlmgr sql history resource=endpoints namespace=default name=web -o json
    ctrlmgr sql -c "SELECT namespace, count(*) FROM objects_at(1200) WHERE resource = 'pods' GROUP BY namespace"
    ctrlmgr sql audit refused=yes
    ctrlmgr sql --audit -c "SELECT verb, count(*) FROM requests GROUP BY verb"
    ctrlmgr sql --datasette > log.json; datasette ctrlmgr.db -m log.json
    ctrlmgr sql
    """
    from ctrlmgr.cli.output import answers
    from ctrlmgr.inspection import custom_views
    from ctrlmgr.inspection.audited_requests import open_requests
    from ctrlmgr.inspection.decrypted import open_decrypted
    from ctrlmgr.inspection.queries import audit_questions

    if sum(map(bool, (question, query, file, listed, datasette))) > 1:
        raise click.UsageError("a ready-made query, -c, -f, --list and --datasette exclude each other")
    configure_logging(loaded.settings)
    if listed:
        _list(output)
        return
    audit = audit or question in audit_questions()
    if audit and is_copy(loaded):
        raise click.UsageError(
            "audited requests are stored on the server's machine, not in its log; run this command there"
        )
    providers = providers_from(loaded.settings.database.encryption_provider_config)
    url, folder = loaded.settings.database_url, loaded.settings.data_path
    opened = open_requests(folder) if audit else open_decrypted(url, providers)
    with opened as database:
        database.refuse_power()
        if datasette:
            _tell_datasette(database, loaded.settings.database_url)
        elif question:
            sql_statements.ask(database, question, parameters, output)
        elif query is not None:
            answers.write(custom_views.query(database, query), output)
        elif file or not sys.stdin.isatty():
            for statement in sql_statements.statements(file.read() if file else sys.stdin.read()):
                answers.write(custom_views.query(database, statement), output)
        else:
            _talk(database, loaded.settings.data_path, output)


def _tell_datasette(database: Database, url: str) -> None:
    """Print the metadata for Datasette; raises `click.UsageError` if Datasette cannot open the database."""
    from ctrlmgr.cli.output.change_lines import write_json
    from ctrlmgr.inspection.datasette import metadata

    if database.dialect != "sqlite":
        raise click.UsageError("Datasette reads SQLite files only; query PostgreSQL with `ctrlmgr sql`")
    write_json(metadata(Path(url).stem, database.relations()))


def _list(output: str) -> None:
    from ctrlmgr.cli.output import answers
    from ctrlmgr.inspection.database import Rows
    from ctrlmgr.inspection.queries import audit_questions, questions

    listed = (*questions().values(), *audit_questions().values())
    rows: list[tuple[str, ...]] = [(each.usage, each.description) for each in listed]
    answers.write(Rows(("query", "result"), rows), output)


def _talk(database: Database, folder: Path, output: str) -> None:
    from ctrlmgr.cli.inspect.sql_shell import Shell, run_shell

    run_shell(Shell(database, output), folder / "sql_history" if folder.is_dir() else None)

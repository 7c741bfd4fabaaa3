"""Contains the code of `ctrlmgr sql` and its shell for ready-made queries and for splitting SQL into statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ctrlmgr.inspection.database import Database


def ask(database: Database, name: str, parameters: tuple[str, ...], output: str) -> None:
    """Print the result of a ready-made query; raises `click.UsageError` if no query has this name."""
    from ctrlmgr.cli.output import answers
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.inspection import moment_parser
    from ctrlmgr.inspection.queries import audit_questions, questions

    question = questions().get(name) or audit_questions().get(name)
    if question is None:
        raise click.UsageError(f"there is no ready-made query {name!r}; --list lists them")
    now = SystemClock().now()
    try:
        given = dict(_pair(each) for each in parameters)
        values = question.bind(given, lambda text: moment_parser.resolve(database, text, now=now))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    answers.write(database.query(question.statement, values), output)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    return name, value


def statements(text: str) -> Iterator[str]:
    """Yield the statements of an SQL text by splitting it at semicolons outside of strings and comments."""
    statement = ""
    for piece in text.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            if meaningful(statement):
                yield statement.rstrip().removesuffix(";")
            statement = ""
    if meaningful(statement):  # the last statement may end without a semicolon
        yield statement.rstrip().removesuffix(";")


def meaningful(statement: str) -> bool:
    """Return whether an SQL statement contains more than comments and white space."""
    lines = (line.strip() for line in statement.splitlines())
    return any(line.strip("; ") and not line.startswith("--") for line in lines)

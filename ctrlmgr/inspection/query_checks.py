"""Checks PostgreSQL queries: accepts one statement, which may only read data and call harmless functions.

Guarantees: a statement that does not begin like a query is refused. A statement is also refused if it calls a function
that ends connections, takes locks, reads files, changes settings, sleeps, or runs statements given as text. The check
is necessary because a read-only transaction allows calls of such functions. As in PostgreSQL, a function's name is
recognized in upper or lower case, quoted or unquoted, and with or without a schema.

The check of queries is the second barrier; the first barrier is the role of the connection
(`examples/postgresql/roles.sql`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ctrlmgr.errors import QueryRefused

_TOKEN: Final = re.compile(
    r"""(?P<skipped>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<escaped>[uU]&["'])
    |(?P<text>[eE]?'(?:[^'\\]|''|\\.)*')
    |(?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    |"(?P<quoted>(?:[^"]|"")*)"
    |(?P<name>[^\W\d][\w$]*)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)

_QUESTIONS: Final = frozenset(("select", "with", "values", "table", "explain", "show"))
_HARMLESS: Final = frozenset(
    (
        "pg_column_size",
        "pg_current_snapshot",
        "pg_database_size",
        "pg_get_constraintdef",
        "pg_get_functiondef",
        "pg_get_indexdef",
        "pg_get_viewdef",
        "pg_indexes_size",
        "pg_is_in_recovery",
        "pg_postmaster_start_time",
        "pg_relation_size",
        "pg_size_pretty",
        "pg_table_size",
        "pg_total_relation_size",
        "pg_typeof",
    )
)
"""The functions of PostgreSQL whose names begin with `pg_` and that only read."""

_HARMFUL: Final = re.compile(
    r"pg_|lo_|dblink|.*_to_xml|.*_to_xmlschema|.*_to_xml_and_xmlschema|set_config|setval|nextval|currval|lastval"
    r"|ts_stat|ts_rewrite|copy|inet_.*|.*crosstab.*|xpath_table"
)


def require_question(statement: str) -> None:
    """Raise `QueryRefused` if `statement` might do more than read."""
    tokens = _tokens(statement)
    first = next(tokens, "")
    while first == "(":
        first = next(tokens, "")
    if first not in _QUESTIONS:
        raise QueryRefused("only queries are allowed: SELECT, WITH, VALUES, TABLE, EXPLAIN, SHOW")
    before = first
    for token in tokens:
        if token == "(" and before not in _HARMLESS and _HARMFUL.match(before):
            raise QueryRefused(f"only queries are allowed: {before}() can do more than read")
        before = token


def names_and_places(statement: str) -> Iterator[tuple[str, int, int]]:
    """Yield the names in a statement as a database reads them, each with its start and end in the statement."""
    for found in _TOKEN.finditer(statement):
        if found.lastgroup == "name":
            yield found["name"].lower(), found.start(), found.end()
        elif found.lastgroup == "quoted":
            yield found["quoted"].replace('""', '"'), found.start(), found.end()


def _tokens(statement: str) -> Iterator[str]:
    """Yield the tokens of a statement, names in lower case and single other characters.

    Skip string constants, comments and white space.
    """
    for found in _TOKEN.finditer(statement):
        match found.lastgroup:
            case "escaped":
                raise QueryRefused("only queries are allowed: names with U& are not supported")
            case "name":
                yield found["name"].lower()
            case "quoted":
                yield found["quoted"].replace('""', '"')
            case "other":
                yield found["other"]
            case "text" | "dollar" | "tag":
                yield "'"

"""Provides shell completion of kinds, names, namespaces, points in time, ready-made queries and controllers.

Guarantees: completion only reads, and only from an existing log. If the log cannot be read, completion offers no values
and prints nothing. If a list of completions is long, only its first entries are offered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from ctrlmgr.errors import CtrlmgrError

if TYPE_CHECKING:
    from ctrlmgr.inspection.database import Database

DEFAULT_NAMESPACE = "default"
"""The namespace in which completion searches objects if the command line names no namespace."""
_MOST = 200

Completer: TypeAlias = "Callable[[click.Context, click.Parameter, str], list[str]]"


def _offering(find: Callable[[click.Context, str], Iterable[str]]) -> Completer:
    """Return a completer that offers those results of `find` that begin with the typed prefix."""

    @wraps(find)
    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        found: list[str] = []
        with suppress(CtrlmgrError, OSError, click.ClickException):
            for each in find(context, typed):
                if each.startswith(typed):
                    found.append(each)  # noqa: PERF401  # what came before an error counts
        return sorted(set(found))[:_MOST]

    return complete


@contextmanager
def _database(context: click.Context) -> Iterator[Database]:
    """Open the log that the options on the incomplete command line select."""
    from ctrlmgr.cli.inspect.current_cluster import local_implied
    from ctrlmgr.inspection.database import open_database
    from ctrlmgr.settings import load

    given: dict[str, Any] = {
        "database.url": context.params.get("flag_database_url"),
        "data_dir": context.params.get("flag_data_dir"),
    }
    settings = local_implied(load(given, os.environ, context.params.get("settings_file"))).settings
    with open_database(settings.database_url) as database:
        yield database


@_offering
def kinds(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the kinds in the log as completions, for each element of a list that is separated by commas.

    After `KIND/`, offer the names of objects of that kind.
    """
    from ctrlmgr.inspection import resource_lookup

    before, comma, _ = typed.rpartition(",")
    kind, slash, _ = typed.partition("/")
    with _database(context) as database:
        if slash:
            for name in _names(context, database, kind):
                yield f"{kind}/{name}"
        else:
            for each in resource_lookup.held(database):
                yield f"{before}{comma}{each}"


@_offering
def resources(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the kinds in the log, and all built-in kinds, as completions."""
    from ctrlmgr.inspection import resource_lookup

    with suppress(CtrlmgrError, OSError), _database(context) as database:
        yield from resource_lookup.held(database)
    yield from resource_lookup.builtin()


@_offering
def object_names(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the names of the objects of the kind and the namespace on the command line."""
    kind = context.params.get("kind") or context.params.get("resource")
    if kind and "/" not in str(kind):
        with _database(context) as database:
            yield from _names(context, database, str(kind))


@_offering
def kinds_and_names(context: click.Context, typed: str) -> Iterator[str]:
    """Offer kinds for the first argument of `get`, and names of objects of that kind for later arguments."""
    given = context.params.get("wanted") or ()
    if given and "/" not in given[0]:
        with _database(context) as database:
            for kind in given[0].split(","):
                yield from _names(context, database, kind)
    else:
        yield from kinds(context, context.command.params[0], typed)


def _names(context: click.Context, database: Database, kind: str) -> list[str]:
    from ctrlmgr.inspection import resource_lookup

    named = resource_lookup.find(database, kind)
    place = (context.params.get("namespace") or DEFAULT_NAMESPACE) if named.namespaced else ""
    everywhere = context.params.get("all_namespaces") or context.command.name in ("events", "diff")
    where = "" if everywhere and not context.params.get("namespace") else " AND namespace = :namespace"
    statement = f"SELECT DISTINCT name FROM object WHERE resource = :resource{where} ORDER BY name LIMIT {_MOST * 10}"
    filters = {"resource": str(named.resource), **({"namespace": place} if where else {})}
    return [row[0] for row in database.query(statement, filters).rows]


@_offering
def namespaces(context: click.Context, typed: str) -> list[str]:
    """Offer all namespaces, including deleted namespaces, as completions."""
    statement = f"SELECT name FROM object WHERE resource = 'namespaces' ORDER BY name LIMIT {_MOST * 10}"
    with _database(context) as database:
        return [row[0] for row in database.query(statement).rows]


@_offering
def moments(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the forms of a point in time: ages, the log's newest revisions, and the time of its newest event."""
    from ctrlmgr.clock import format_time_seconds

    yield from ("head", "1m", "10m", "1h", "1d")
    statement = "SELECT revision, recorded_at FROM event ORDER BY revision DESC LIMIT 20"
    with _database(context) as database:
        rows = database.query(statement).rows
    yield from (str(row[0]) for row in rows)
    yield from (format_time_seconds(row[1]) for row in rows[:1])


@_offering
def questions(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the names of the ready-made queries as completions."""
    from ctrlmgr.inspection.queries import audit_questions
    from ctrlmgr.inspection.queries import questions as ready_made

    return iter((*ready_made(), *audit_questions()))


@_offering
def question_parameters(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the parameters of the given question, each followed by `=`."""
    from ctrlmgr.inspection.queries import questions as ready_made

    question = ready_made().get(context.params.get("question") or "")
    words = question.usage.split()[1:] if question else []
    return (f"{word.partition('=')[0]}=" for word in words)


@_offering
def controllers(context: click.Context, typed: str) -> Iterator[str]:
    """For each element of a list, offer `*`, and each controller with and without a minus before its name."""
    from ctrlmgr.controllers import registry

    before, comma, _ = typed.rpartition(",")
    yield f"{before}{comma}*"
    for each in registry.ALL:
        yield f"{before}{comma}{each.name}"
        yield f"{before}{comma}-{each.name}"

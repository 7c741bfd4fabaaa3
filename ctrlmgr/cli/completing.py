"""What a shell offers when one presses Tab: kinds, names, questions, controllers, moments.

Guarantees: only reads, and only a log that is there; what cannot be read offers nothing, and says nothing. Of long
lists the first are offered: one goes on typing.
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
"""The one that is meant where none is named."""
_MOST = 200

Completer: TypeAlias = "Callable[[click.Context, click.Parameter, str], list[str]]"


def _offering(find: Callable[[click.Context, str], Iterable[str]]) -> Completer:
    """Return a completer of what `find` knows that begins with what is typed."""

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
    """Open the log that the command line so far names."""
    from ctrlmgr.inspection.database import open_database
    from ctrlmgr.settings import load

    given: dict[str, Any] = {
        "database.url": context.params.get("flag_database_url"),
        "data_dir": context.params.get("flag_data_dir"),
    }
    settings = load(given, os.environ, context.params.get("settings_file")).settings
    with open_database(settings.database_url) as database:
        yield database


@_offering
def kinds(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the kinds that the log holds, after a comma too, and KIND/NAME after a slash; else all kinds there are."""
    from ctrlmgr.inspection import names

    before, comma, _ = typed.rpartition(",")
    kind, slash, _ = typed.partition("/")
    with _database(context) as database:
        if slash:
            for name in _names(context, database, kind):
                yield f"{kind}/{name}"
        else:
            for each in names.held(database):
                yield f"{before}{comma}{each}"


@_offering
def resources(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the kinds that Kubernetes has and the log may, whether or not there is one."""
    from ctrlmgr.inspection import names

    with suppress(CtrlmgrError, OSError), _database(context) as database:
        yield from names.held(database)
    yield from names.builtin()


@_offering
def object_names(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the names of the objects of the kind that stands before, in the namespace that was given."""
    kind = context.params.get("kind") or context.params.get("resource")
    if kind and "/" not in str(kind):
        with _database(context) as database:
            yield from _names(context, database, str(kind))


@_offering
def kinds_and_names(context: click.Context, typed: str) -> Iterator[str]:
    """Offer kinds first, and then names of the first kind, as `get` takes them."""
    given = context.params.get("wanted") or ()
    if given and "/" not in given[0]:
        with _database(context) as database:
            for kind in given[0].split(","):
                yield from _names(context, database, kind)
    else:
        yield from kinds(context, context.command.params[0], typed)


def _names(context: click.Context, database: Database, kind: str) -> list[str]:
    from ctrlmgr.inspection import names

    named = names.find(database, kind)
    place = (context.params.get("namespace") or DEFAULT_NAMESPACE) if named.namespaced else ""
    everywhere = context.params.get("all_namespaces") or context.command.name in ("events", "diff")
    where = "" if everywhere and not context.params.get("namespace") else " AND namespace = :namespace"
    statement = f"SELECT DISTINCT name FROM object WHERE resource = :resource{where} ORDER BY name LIMIT {_MOST * 10}"
    wanted = {"resource": str(named.resource), **({"namespace": place} if where else {})}
    return [row[0] for row in database.query(statement, wanted).rows]


@_offering
def namespaces(context: click.Context, typed: str) -> list[str]:
    """Offer the namespaces that there are or were."""
    statement = f"SELECT name FROM object WHERE resource = 'namespaces' ORDER BY name LIMIT {_MOST * 10}"
    with _database(context) as database:
        return [row[0] for row in database.query(statement).rows]


@_offering
def moments(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the forms of a moment: how long ago, and, of the log, its newest revisions and its newest event's time."""
    from ctrlmgr.clock import format_time_seconds

    yield from ("head", "1m", "10m", "1h", "1d")
    statement = "SELECT revision, recorded_at FROM event ORDER BY revision DESC LIMIT 20"
    with _database(context) as database:
        rows = database.query(statement).rows
    yield from (str(row[0]) for row in rows)
    yield from (format_time_seconds(row[1]) for row in rows[:1])


@_offering
def questions(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the ready-made questions."""
    from ctrlmgr.inspection.questions import audit_questions
    from ctrlmgr.inspection.questions import questions as ready_made

    return iter((*ready_made(), *audit_questions()))


@_offering
def question_parameters(context: click.Context, typed: str) -> Iterator[str]:
    """Offer the parameters of the question that stands before, each with its `=`."""
    from ctrlmgr.inspection.questions import questions as ready_made

    question = ready_made().get(context.params.get("question") or "")
    words = question.usage.split()[1:] if question else []
    return (f"{word.partition('=')[0]}=" for word in words)


@_offering
def controllers(context: click.Context, typed: str) -> Iterator[str]:
    """Offer `*`, and each controller, to be run or, after a minus, not; in a list, too."""
    from ctrlmgr.controllers import registry

    before, comma, _ = typed.rpartition(",")
    yield f"{before}{comma}*"
    for each in registry.ALL:
        yield f"{before}{comma}{each.name}"
        yield f"{before}{comma}-{each.name}"

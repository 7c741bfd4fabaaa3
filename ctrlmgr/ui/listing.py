"""Lists events up to a revision, beginning with the newest, with filters and in pages.

Guarantees:
- A query reads at most `_SCANNED` revisions, even if few events match, and returns the last revision that it read. The
  next query of the list continues at that revision.
- Heartbeats (leases, and Events about other objects) are omitted and counted, unless they are requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.inspection.database import Database
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.visibility import DELETED_NAMESPACES, PastVisibility

TYPES: Final = {1: "ADDED", 2: "MODIFIED", 3: "DELETED"}
QUIET: Final = (
    "leases.coordination.k8s.io",
    "masterleases.internal.ctrlmgr.io",
    "apicompactions.internal.ctrlmgr.io",
    "events",
    "events.events.k8s.io",
)
"""Kinds whose events are omitted unless they are requested."""

_PAGE = 200
_LOOKS = 25
"""Maximum number of database reads per query; each read returns up to `_PAGE` rows."""
_SCANNED = 100_000
_PLACE = ("revision", "recordedAt", "type", "resource", "namespace", "name")
_COLUMNS = (*_PLACE, "actor", "userAgent", "term", "reconcile", "controller", "key")
_FROM = "FROM event AS e JOIN object AS o ON o.id = e.object_id"
_LISTED = f"""
SELECT e.revision, e.recorded_at, e.type, o.resource, o.namespace, o.name, e.actor, e.user_agent, e.term,
    e.reconcile_id, r.controller, r.key
{_FROM} LEFT JOIN reconcile AS r ON r.id = e.reconcile_id
WHERE e.revision <= :at AND e.revision >= :low {{filters}} ORDER BY e.revision DESC LIMIT :limit"""
_COUNTED = f"""
SELECT o.resource, o.namespace, max(e.revision), count(*) {_FROM}
LEFT JOIN ({DELETED_NAMESPACES}) AS d ON d.name = o.namespace
WHERE e.revision <= :at AND e.revision >= :low {{filters}}
GROUP BY o.resource, o.namespace, e.revision > coalesce(d.revision, 0)"""
_EQUAL = {"namespace": "o.namespace", "kind": "o.resource", "actor": "e.actor"}


class _SqlConditions(NamedTuple):
    """A query for events: its SQL conditions, and the values of their parameters."""

    filters: str
    values: dict[str, Any]
    hides: bool
    """Whether events of quiet kinds are omitted."""

    def query(self, template: str, *, quiet: bool) -> str:
        """Return the query with an additional condition: only quiet kinds, or only all other kinds."""
        names = ", ".join(f"'{each}'" for each in QUIET)
        kinds = f" AND o.resource {'' if quiet else 'NOT '}IN ({names})" if self.hides else ""
        return template.format(filters=self.filters + kinds)


class Listing:
    """Lists events from a log."""

    def __init__(self, reader: Reader) -> None:
        """Create an instance that queries the log with `reader`."""
        self._reader = reader

    def events(self, parameters: Parameters) -> dict[str, Any]:
        """Return the newest `limit` events up to the revision `at` that match the query.

        `looked` is the revision down to which the result contains all matching events; it is 1 if the beginning of the
        log was reached. `hidden` is the number of matching events of quiet kinds between `looked` and `at`.
        """
        limit = parameters.number("limit", 50, low=1, high=_PAGE)
        conditions = _conditions_of(parameters)

        def answer(database: Database) -> dict[str, Any]:
            at = self._reader.moment(database, parameters)
            low = max(1, at - _SCANNED + 1)
            visibility = parameters.visibility.past(database)
            found, looked = _listed(database, conditions, range(low, at + 1), limit, visibility)
            hidden = _hidden(database, conditions, looked, at, visibility) if conditions.hides else 0
            return {"at": at, "events": found, "looked": looked, "hidden": hidden}

        return self._reader.ask(answer)


def event(row: Sequence[Any]) -> dict[str, Any]:
    """Return a row with the columns of `_LISTED` as plain JSON values."""
    fields = dict(zip(_COLUMNS, row, strict=True))
    fields["type"] = TYPES[fields["type"]]
    return fields


def _conditions_of(parameters: Parameters) -> _SqlConditions:
    filters, values = "", dict[str, Any]()
    for name, column in _EQUAL.items():
        if value := parameters.text(name, ""):
            filters += f" AND {column} = :{name}"
            values[name] = value
    if verb := parameters.choice("verb", ("", *TYPES.values())):
        filters += " AND e.type = :type"
        values["type"] = next(number for number, word in TYPES.items() if word == verb)
    if text := parameters.text("q", ""):
        filters += " AND o.name LIKE :text ESCAPE '!'"
        values["text"] = f"%{text.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
    shows = parameters.choice("quiet", ("", "1")) or parameters.text("kind", "") in QUIET
    return _SqlConditions(filters, values, not shows)


def _listed(
    database: Database, conditions: _SqlConditions, span: range, limit: int, visibility: PastVisibility
) -> tuple[list[dict[str, Any]], Revision]:
    """Return the newest events that the user may see, and the revision down to which the list is complete."""
    found: list[dict[str, Any]] = []
    query, low, at = conditions.query(_LISTED, quiet=False), span.start, span.stop - 1
    for _ in range(_LOOKS):
        rows = database.query(query, {**conditions.values, "at": at, "low": low, "limit": _PAGE}).rows
        for row in rows:
            if visibility.sees(Resource.parse(row[3]), Key(row[4], row[5]), row[0]):
                found.append(event(row))
                if len(found) == limit:
                    return found, row[0]
        if len(rows) < _PAGE:
            return found, low
        at = rows[-1][0] - 1
    return found, at + 1


def _hidden(
    database: Database, conditions: _SqlConditions, low: Revision, at: Revision, visibility: PastVisibility
) -> int:
    """Return the number of omitted events of quiet kinds that the user may see."""
    rows = database.query(conditions.query(_COUNTED, quiet=True), {**conditions.values, "at": at, "low": low}).rows
    return sum(events for resource, *where, events in rows if visibility.lists(Resource.parse(resource), *where))

"""Returns the kinds at a revision with their numbers of objects, and a table of one kind in Kubernetes' columns.

Guarantees: a table has at most `_ROWS` rows. The response contains the total number of rows, and the start of the next
page. If the revision was compacted, `Expired` is raised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import INTERNAL_GROUP, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.inspection import moment_parser
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.historical_custom_kinds import CustomKindsAt
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.ui.failures_page import resource_of, seen_failures
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader

_ROWS = 500
_GONE = 50
_NEAR = 20
"""Default number of revisions before the requested revision within which deleted objects are also shown."""

_KINDS = """
SELECT o.resource, o.namespace, count(*) FROM objects_at(:at) AS o GROUP BY o.resource, o.namespace ORDER BY 1, 2"""

_NAMESPACES = "SELECT DISTINCT namespace FROM object WHERE resource = :resource ORDER BY namespace"

_DELETED = """
SELECT o.namespace, o.name, max(e.revision) FROM event AS e JOIN object AS o ON o.id = e.object_id
WHERE e.revision > :after AND e.revision <= :at AND e.type = 3 AND {where}
GROUP BY o.namespace, o.name ORDER BY 3 DESC LIMIT :most"""


class Tables:
    """Reads tables of objects from a log."""

    def __init__(self, reader: Reader, *, clock: Clock) -> None:
        """Create an instance that queries the log with `reader`."""
        self._reader = reader
        self._clock = clock

    def kinds(self, parameters: Parameters) -> dict[str, Any]:
        """Return the number of objects of each resource in each namespace at the revision `at`.

        In the result, custom kinds precede built-in kinds. Among custom kinds and among built-in kinds, those with the
        most failing reconciles come first.
        """

        def answer(database: Database) -> dict[str, Any]:
            at, is_past = self._reader.moment(database, parameters), bool(parameters.number("at", 0))
            visibility = parameters.visibility.past(database)
            counted: dict[str, dict[str, int]] = {}
            for resource, namespace, number in database.query(_KINDS, {"at": at}).rows:
                if visibility.lists(Resource.parse(resource), namespace, at):
                    counted.setdefault(resource, {})[namespace] = number
            lost = moment_parser.floors_above(database, at)
            failing = _failing(database, parameters, moment_parser.recorded_at(database, at) if is_past else None)
            kinds = [
                {"resource": name, "namespaces": counts, "custom": _is_custom(name), "failing": failing[name]}
                for name, counts in counted.items()
            ]
            kinds.sort(key=lambda each: (not each["custom"], -failing[str(each["resource"])], each["resource"]))
            return {"at": at, "kinds": kinds, "compacted": lost}

        return self._reader.ask(answer)

    def objects(self, parameters: Parameters) -> dict[str, Any]:
        """Return the objects of `resource` at the revision `at`, filtered by `namespace` ("" for all) and name (`q`).

        The table begins after the object `after` (`NAMESPACE/NAME`). Objects that were deleted within `near` revisions
        before `at` are included.
        """
        limit = parameters.number("limit", 200, low=1, high=_ROWS)
        near = parameters.number("near", _NEAR)

        def answer(database: Database) -> dict[str, Any]:
            head, at = self._reader.head(database), self._reader.moment(database, parameters)
            resource = Resource.parse(parameters.text("resource"))
            visibility = parameters.visibility.past(database)
            where, filters = _where(database, resource, parameters, at)
            found = _page(database, at, where, filters, parameters.text("after", ""), limit + 1)
            counted = f"SELECT count(*) FROM objects_at(:at) AS o WHERE {where}"
            total = database.query(counted, {**filters, "at": at}).rows[0][0]
            gone = {**filters, "at": at, "after": at - near, "most": _GONE}
            rows = database.query(_DELETED.format(where=where), gone).rows if near else []
            deleted = [row for row in rows if visibility.lists(resource, row[0], row[2])]
            moment_parser.refuse_expired(database, at, resource)
            objects = [Object(resource, body.encode(), revision) for revision, body in found]
            now = self._clock.now() if at == head else moment_parser.recorded_at(database, at)
            custom = CustomKindsAt(database, at)
            return {"at": at, "head": head, "total": total} | _table(objects, deleted, now, limit, custom)

        return self._reader.ask(answer)


def _failing(database: Database, parameters: Parameters, moment: int | None) -> Counter[str]:
    """Return, for each resource, the number of objects whose reconciles fail now, or failed at a given time."""
    found = Counter(each.kind for each in seen_failures(database, parameters.visibility, at=moment) if each.kind)
    return Counter({str(resource_of(database, kind)): number for kind, number in found.items()})


def _is_custom(resource: str) -> bool:
    """Return whether a resource is a custom resource: its API group belongs neither to Kubernetes nor to ctrlmgr."""
    group = Resource.parse(resource).group
    return "." in group and not group.endswith(".k8s.io") and group != INTERNAL_GROUP


def _where(database: Database, resource: Resource, parameters: Parameters, at: Revision) -> tuple[str, dict[str, Any]]:
    """Return the SQL condition for the requested objects that the user may see.

    Raises `Forbidden` if the user may see none of these objects.
    """
    where, filters = "o.resource = :resource", {"resource": str(resource)}
    namespaces = _namespaces(database, resource, parameters)
    if namespaces is not None:
        visibility = parameters.visibility.past(database)
        seen = [name for name in namespaces if at > visibility.hidden_until(resource, name)]
        names = {f"namespace{number}": name for number, name in enumerate(seen)}
        where += f" AND o.namespace IN ({', '.join(f':{name}' for name in names) or 'NULL'})"
        filters |= names
    if text := parameters.text("q", "").strip():
        where += " AND o.namespace || '/' || o.name LIKE :like ESCAPE '!'"
        escaped = text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        filters["like"] = f"%{escaped}%"
    return where, filters


def _namespaces(database: Database, resource: Resource, parameters: Parameters) -> Sequence[str] | None:
    """Return the requested namespace, or the namespaces that the user may see.

    The function returns None if the user may see all namespaces.
    """
    visibility, namespace = parameters.visibility, parameters.text("namespace", "")
    if not namespace and not visibility.lists(resource, ""):
        rows = database.query(_NAMESPACES, {"resource": str(resource)}).rows
        if found := [name for (name,) in rows if name and visibility.lists(resource, name)]:
            return found
    visibility.check_list(resource, namespace)
    return [namespace] if namespace else None


def _page(
    database: Database, at: Revision, where: str, filters: dict[str, Any], after: str, limit: int
) -> Sequence[tuple[Revision, str]]:
    parameters: dict[str, Any] = {**filters, "at": at, "limit": limit}
    if after:
        where += " AND (o.namespace > :place OR (o.namespace = :place AND o.name > :last))"
        parameters["place"], _, parameters["last"] = after.partition("/")
    statement = (
        f"SELECT o.revision, o.body FROM objects_at(:at) AS o WHERE {where} ORDER BY o.resource, o.namespace, o.name"
    )
    return database.query(f"{statement} LIMIT :limit", parameters).rows


@cache
def printers() -> Kinds:
    """Return the built-in kinds with their table definitions."""
    return builtin_kinds()


def _table(
    objects: list[Object], deleted: Sequence[tuple[str, str, int]], now: int, limit: int, custom: CustomKindsAt
) -> dict[str, Any]:
    shown = objects[:limit]
    gvk = gvk_of(shown[0]) if shown else GroupVersionKind("", "v1", "")
    table = printers().printer_of(gvk)
    if shown and printers().by_gvk(gvk) is None and (kind := custom.kind_of(shown[0])) is not None:
        table, shown = kind.printer, [custom.shown(obj) for obj in shown]
    there = {(obj.namespace, obj.name) for obj in objects}
    last = shown[-1] if len(objects) > limit else None
    return {
        "kind": gvk.kind,
        "apiVersion": gvk.api_version,
        "columns": [{"name": each.name, "type": each.type, "wide": each.priority > 0} for each in table.columns],
        "rows": [
            {"namespace": obj.namespace, "name": obj.name, "revision": obj.revision, "cells": table.cells(obj, now)}
            for obj in shown
        ],
        "deleted": [
            {"namespace": namespace, "name": name, "revision": revision}
            for namespace, name, revision in deleted
            if (namespace, name) not in there
        ],
        "next": f"{last.namespace}/{last.name}" if last else "",
    }


def gvk_of(obj: Object) -> GroupVersionKind:
    """Return the group, version and kind that an object's body contains."""
    fields = obj.to_dict()
    group, _, version = fields["apiVersion"].rpartition("/")
    return GroupVersionKind(group, version, fields["kind"])

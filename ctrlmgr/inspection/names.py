"""What people call a resource: `pods`, `pod`, `po`, `Pod`, `deployments.apps`, or any that the log itself holds.

Guarantees: built-in kinds go by the names of Kubernetes' discovery, the core group first where several share one;
what no discovery knows (custom resources, internal ones) goes by the resource's own name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ctrlmgr.api.resource import Resource
from ctrlmgr.errors import NotFound
from ctrlmgr.inspection.database import Database
from ctrlmgr.schema import structure


class Named(NamedTuple):
    """A resource that a user has named."""

    resource: Resource
    namespaced: bool
    singular: str
    """As kubectl's `-o name` has it: `pod`, `deployment.apps`."""


def find(database: Database, text: str) -> Named:
    """Return the resource that `text` names; raises `NotFound`, as an API server does, when there is none."""
    if named := _builtin().get(text.lower()):
        return named
    resource = text.lower()
    statement = "SELECT min(namespace) FROM object WHERE resource = :resource"
    least = database.query(statement, {"resource": resource}).rows[0][0]
    if least is None:
        raise NotFound(f'the log has no resource type "{text}"')
    return Named(Resource.parse(resource), namespaced=least != "", singular=resource)


def find_all(database: Database, text: str) -> Sequence[Named]:
    """Return the resources that a list such as `pods,svc` names; a category, as `all` is one, names several.

    Raises `NotFound` as `find` does. What is named twice comes once.
    """
    found: dict[Resource, Named] = {}
    for name in text.split(","):
        for named in _categories().get(name.lower()) or [find(database, name)]:
            found.setdefault(named.resource, named)
    return list(found.values())


@cache
def _builtin() -> Mapping[str, Named]:
    """Return every name of every built-in resource."""
    found: dict[str, Named] = {}
    for entry, group, version in _entries():
        for name in _names(entry, group, version):
            found.setdefault(name.lower(), _named(entry, group))
    return found


@cache
def _categories() -> Mapping[str, Sequence[Named]]:
    """Return every category of built-in resources."""
    found: dict[str, list[Named]] = {}
    for entry, group, _ in _entries():
        for category in entry.get("categories", ()):
            found.setdefault(category, []).append(_named(entry, group))
    return found


def _entries() -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """Yield what discovery says of each resource, with its group and version."""
    for path, document in structure.discovery().items():
        if path in ("/api", "/apis"):
            continue
        group, _, version = path.removeprefix("/apis/").rpartition("/") if path.startswith("/apis/") else ("", "", "v1")
        for entry in document["resources"]:
            if "/" not in entry["name"]:
                yield entry, group, version


def _named(entry: Mapping[str, Any], group: str) -> Named:
    suffix = f".{group}" if group else ""
    return Named(Resource(group, entry["name"]), entry["namespaced"], entry["singularName"] + suffix)


def _names(entry: Mapping[str, Any], group: str, version: str) -> Iterator[str]:
    for name in (entry["name"], entry["singularName"], entry["kind"], *entry.get("shortNames", ())):
        yield name
        if group:
            yield f"{name}.{group}"
        yield f"{name}.{version}.{group}" if group else f"{name}.{version}"

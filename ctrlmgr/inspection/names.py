"""What people call a resource: `pods`, `pod`, `po`, `Pod`, `deployments.apps`, or any that the log itself holds.

Guarantees: built-in kinds go by the names of Kubernetes' discovery, the core group first where several share one;
what no discovery knows (custom resources, internal ones) goes by the resource's own name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from ctrlmgr.api.resource import Resource
from ctrlmgr.errors import NotFound
from ctrlmgr.inspection.database import Database
from ctrlmgr.resources import structure


class Named(NamedTuple):
    """A resource that somebody has named."""

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


@cache
def _builtin() -> Mapping[str, Named]:
    """Return every name of every built-in resource."""
    found: dict[str, Named] = {}
    for path, document in structure.discovery().items():
        if path in ("/api", "/apis"):
            continue
        group, _, version = path.removeprefix("/apis/").rpartition("/") if path.startswith("/apis/") else ("", "", "v1")
        for entry in document["resources"]:
            if "/" not in entry["name"]:
                for name in _names(entry, group, version):
                    found.setdefault(name.lower(), _named(entry, group))
    return found


def _named(entry: Mapping[str, Any], group: str) -> Named:
    suffix = f".{group}" if group else ""
    return Named(Resource(group, entry["name"]), entry["namespaced"], entry["singularName"] + suffix)


def _names(entry: Mapping[str, Any], group: str, version: str) -> Iterator[str]:
    for name in (entry["name"], entry["singularName"], entry["kind"], *entry.get("shortNames", ())):
        yield name
        if group:
            yield f"{name}.{group}"
        yield f"{name}.{version}.{group}" if group else f"{name}.{version}"

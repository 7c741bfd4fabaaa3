"""Finds a resource by one of its names, such as `pods`, `pod`, `po`, `Pod` or `deployments.apps`.

Guarantees: built-in kinds have the names in Kubernetes' discovery; if several kinds have the same name, the kind of the
core group is returned. Custom kinds have the names that their CustomResourceDefinitions had accepted at the given
revision. If the log contains objects of an unknown kind, the kind's resource can be found only by its plural.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.errors import NotFound
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.historical_custom_kinds import CustomKindsAt
from ctrlmgr.schema import published_schema


class Named(NamedTuple):
    """A resource that a user has named."""

    resource: Resource
    namespaced: bool
    singular: str
    """The name of the kind as in kubectl's `-o name`: `pod`, `deployment.apps`."""
    is_custom: bool = False
    """Whether a CustomResourceDefinition defines the resource."""


def find(database: Database, text: str, at: Revision | None = None) -> Named:
    """Return the resource with the name `text`, now or at a revision.

    Raises `NotFound` with the API server's message if no resource has this name.
    """
    if named := _builtin().get(text.lower()):
        return named
    for definition in CustomKindsAt(database, at):
        if text.lower() in _names_of(definition):
            return _custom(definition)
    if (held := _held(database, text.lower())) is None:
        raise NotFound(f'no resource type "{text}"')
    return held


def held(database: Database) -> list[str]:
    """Return the names of the resources with objects in the log: plurals, with the group if a plural is ambiguous."""
    rows = database.query("SELECT DISTINCT resource FROM object").rows
    found = []
    for (name,) in rows:
        resource = Resource.parse(name)
        short = _builtin().get(resource.plural)
        found.append(resource.plural if short is None or short.resource == resource else name)
    return sorted(found)


def builtin() -> list[str]:
    """Return the plurals of all built-in resources."""
    return sorted({named.resource.plural for named in _builtin().values()})


def _held(database: Database, text: str) -> Named | None:
    """Return the resource with this name if the log contains objects of it, even without a CustomResourceDefinition.

    A recording may contain custom objects without their CustomResourceDefinition. The kind in lower case is then also
    used as the singular name.
    """
    for name, least in database.query("SELECT resource, min(namespace) FROM object GROUP BY resource").rows:
        resource = Resource.parse(name)
        if name in _builtin() and text != name:
            continue
        singular, version = _seen_as(database, name)
        forms = {resource.plural, singular}
        of_group = {f"{each}.{resource.group}" for each in forms}
        if text in forms | of_group | {f"{each}.{version}.{resource.group}" for each in forms} | {name}:
            return Named(resource, namespaced=least != "", singular=f"{singular}.{resource.group}".strip("."))
    return None


def _seen_as(database: Database, resource: str) -> tuple[str, str]:
    """Return the lower-case kind and the version of a resource's objects.

    If there are no objects, return the resource's name and "".
    """
    statement = "SELECT kind, api_version FROM objects WHERE resource = :resource LIMIT 1"
    for kind, api_version in database.query(statement, {"resource": resource}).rows:
        return kind.lower(), api_version.rpartition("/")[2]
    return Resource.parse(resource).plural, ""


def find_all(database: Database, text: str, at: Revision | None = None) -> Sequence[Named]:
    """Return the resources in a list such as `pods,svc`; a category such as `all` means all its resources.

    Raises `NotFound` if a name is unknown, as `find` does. The result contains no duplicates.
    """
    found: dict[Resource, Named] = {}
    for name in text.split(","):
        for named in _of_category(database, name.lower(), at) or [find(database, name, at)]:
            found.setdefault(named.resource, named)
    return list(found.values())


def _of_category(database: Database, category: str, at: Revision | None) -> Sequence[Named]:
    builtin = _categories().get(category, ())
    if not builtin and category in _builtin():  # the usual case
        return ()
    custom = CustomKindsAt(database, at)
    return [*builtin, *(_custom(each) for each in custom if category in each.accepted.categories)]


def _custom(definition: Definition) -> Named:
    names, group = definition.accepted, definition.group
    return Named(Resource(group, names.plural), definition.namespaced, f"{names.singular}.{group}", is_custom=True)


def _names_of(definition: Definition) -> Iterator[str]:
    names, group = definition.accepted, definition.group
    for name in (names.plural, names.singular, names.kind.lower(), *names.short_names):
        yield name
        yield f"{name}.{group}"
        yield from (f"{name}.{version}.{group}" for version in definition.versions)


@cache
def _builtin() -> Mapping[str, Named]:
    """Return all built-in resources by each of their names."""
    found: dict[str, Named] = {}
    for entry, group, version in _entries():
        for name in _names(entry, group, version):
            found.setdefault(name.lower(), _named(entry, group))
    return found


@cache
def _categories() -> Mapping[str, Sequence[Named]]:
    """Return the built-in resources of each category."""
    found: dict[str, list[Named]] = {}
    for entry, group, _ in _entries():
        for category in entry.get("categories", ()):
            found.setdefault(category, []).append(_named(entry, group))
    return found


def _entries() -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """Yield discovery's entry of each resource, with its group and version."""
    for path, document in published_schema.resource_lists().items():
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

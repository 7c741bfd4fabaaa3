"""Decides which StorageVersions a server publishes: one for each resource of the built-in kinds that is stored.

Source: apiserver `pkg/storageversion/manager.go`, `pkg/endpoints/installer.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.resource import Resource
from ctrlmgr.api.version_order import newest_first
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds


class PublishedVersion(NamedTuple):
    """The versions of one resource, which several groups may serve."""

    name: str
    """The name of the StorageVersion, such as `apps.deployments`."""
    resources: tuple[Resource, ...]
    """The resources with the same stored objects."""
    encoding: str
    decodable: tuple[str, ...]
    served: tuple[str, ...]
    """The versions of the first group, as all API versions here with the group: `apps/v1`."""

    def entry(self, server: str) -> dict[str, Any]:
        """Return the entry of the server with this identity."""
        return {
            "apiServerID": server,
            "encodingVersion": self.encoding,
            "decodableVersions": [*self.decodable],
            "servedVersions": [*self.served],
        }


def published_versions(kinds: Kinds) -> Sequence[PublishedVersion]:
    """Return the versions of all stored built-in kinds, by group and resource."""
    by_storage: dict[Resource, list[Kind]] = {}
    for kind in kinds:
        if kind.document is None and {"create", "get"} <= kind.verbs:
            by_storage.setdefault(kind.storage, []).append(kind)
    found = (_published(kinds, sorted(each, key=lambda kind: kind.resource)) for each in by_storage.values())
    return sorted(found, key=lambda each: each.resources[0])


def _published(kinds: Kinds, same: Sequence[Kind]) -> PublishedVersion:
    first = same[0]
    resource = first.resource
    encoding = _api_version(first.storage.group, first.stored_version)
    served = tuple(kind.gvk.api_version for kind in same if kind.resource == resource)
    known = [version for version, name in kinds.definitions.by_kind if name == first.gvk.kind]
    versions = newest_first(each.rpartition("/")[2] for each in known if each.rpartition("/")[0] == resource.group)
    own = (_api_version(resource.group, version) for version in versions)
    others = (kind.gvk.api_version for kind in same)
    return PublishedVersion(
        f"{resource.group or 'core'}.{resource.plural}",
        tuple(dict.fromkeys(kind.resource for kind in same)),
        encoding,
        tuple(dict.fromkeys((*own, *others, encoding))),
        served,
    )


def _api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version

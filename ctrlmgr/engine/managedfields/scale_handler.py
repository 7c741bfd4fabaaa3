"""The managedFields of `/scale`, which contain only the managers of the replicas.

A write to `/scale` changes only these managers. Guarantees: other managers keep all fields except for the replicas. A
manager that takes over the replicas gets an entry for the subresource `scale`, without a time, as in Kubernetes. One
difference from Kubernetes is intended: an update entry with replicas and other fields stays one entry, which Kubernetes
splits into two entries with the same identity. Source: apimachinery `managedfields/scalehandler.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields import field_set, managers
from ctrlmgr.engine.managedfields.field_set import FieldSet
from ctrlmgr.engine.managedfields.managers import UPDATE, Entry, Managed, Manager

SCALE_VERSION: Final = "autoscaling/v1"
"""The apiVersion of the kind Scale."""

_REPLICAS = ("f:spec", "f:replicas")


def to_scale(entries: Sequence[Unstructured], replicas: Mapping[str, Sequence[str]]) -> list[Unstructured]:
    """Return the managedFields of an object's Scale.

    The argument `replicas` contains the path of the replicas in each apiVersion of the object, such as `("spec",
    "replicas")`. Entries of other API versions are left out. Raises ValueError if an entry is malformed.
    """
    shown: Managed = {}
    for manager, entry in managers.decode(entries, trusted=True).items():
        path = _path(replicas, entry.api_version)
        if path and field_set.contains(entry.fields, path):
            as_scale = manager._replace(api_version=SCALE_VERSION if manager.operation == UPDATE else "")
            shown[as_scale] = Entry(_set(_REPLICAS), SCALE_VERSION, entry.time)
    return managers.encode(shown)


def from_scale(
    entries: Sequence[Unstructured],
    scale_entries: Sequence[Unstructured],
    api_version: str,
    replicas: Mapping[str, Sequence[str]],
) -> list[Unstructured]:
    """Return an object's managedFields after a write to its Scale; `entries` are the managedFields before the write.

    The argument `scale_entries` contains the Scale's entries after the write, and `api_version` is that of the object.
    Raises ValueError if an entry is malformed.
    """
    taken = {
        _versionless(manager): manager
        for manager, entry in managers.decode(scale_entries, trusted=True).items()
        if field_set.contains(entry.fields, _REPLICAS)
    }
    result: Managed = {}
    for manager, entry in managers.decode(entries, trusted=True).items():
        if entry.api_version not in replicas:
            continue
        path = _path(replicas, entry.api_version)
        if not path or not field_set.contains(entry.fields, path) or taken.pop(_versionless(manager), None) is not None:
            result[manager] = entry
        elif rest := field_set.difference(entry.fields, _set(path)):
            result[manager] = entry._replace(fields=rest, raw=None)
    for manager in taken.values():
        own = manager._replace(api_version=api_version if manager.operation == UPDATE else "")
        result[own] = Entry(_set(_path(replicas, api_version)), api_version)
    return managers.encode(result)


def _versionless(manager: Manager) -> Manager:
    return manager._replace(api_version="")


def _path(replicas: Mapping[str, Sequence[str]], api_version: str) -> tuple[str, ...]:
    return tuple(f"f:{name}" for name in replicas.get(api_version, ()))


def _set(path: Sequence[str]) -> FieldSet:
    return field_set.of_paths(path)

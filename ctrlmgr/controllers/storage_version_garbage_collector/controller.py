"""The StorageVersion garbage collector: removes the entries of API servers that no longer exist.

Guarantees: an entry is removed if its API server has no identity Lease. The identity Lease is in `kube-system`, has the
name of the API server, and has the label of identity Leases. A StorageVersion without entries is deleted. A
StorageVersion that never had an entry is kept.

Source: `pkg/controller/storageversiongc/gc_controller.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES, Key, Resource
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.storage_version_garbage_collector import DESCRIPTOR
from ctrlmgr.informer import Change, Lister
from ctrlmgr.kinds.apiserverinternal.storage_version import common_version
from ctrlmgr.manager import Controller, Watch

STORAGE_VERSIONS: Final = Resource("internal.apiserver.k8s.io", "storageversions")
_NAMESPACE: Final = "kube-system"
_LABEL: Final = "apiserver.kubernetes.io/identity"
_EQUAL: Final = "AllEncodingVersionsEqual"


def is_identity(lease: Object | None) -> bool:
    """Return whether a Lease is the identity Lease of an API server."""
    return lease is not None and lease.labels.get(_LABEL) == "kube-apiserver"


def without_servers(storage_version: Object, gone: Iterable[str], now: str) -> dict[str, Any]:
    """Return the fields of a StorageVersion without the entries of the API servers `gone`.

    The common version and its condition are computed from the remaining entries.
    """
    names = frozenset(gone)
    entries = (storage_version.to_dict().get("status") or {}).get("storageVersions") or ()
    return with_entries(storage_version, [each for each in entries if each.get("apiServerID") not in names], now)


def with_entries(storage_version: Object, entries: list[dict[str, Any]], now: str) -> dict[str, Any]:
    """Return the fields of a StorageVersion with other entries, and with their common version and its condition."""
    fields = storage_version.to_dict()
    status = {**(fields.get("status") or {}), "storageVersions": entries}
    common = common_version(entries)
    before = status.pop("commonEncodingVersion", None)
    condition = _condition(fields["metadata"].get("generation"), is_equal=common is not None, now=now)
    changed = None not in (before, common) and before != common
    status["conditions"] = _with(status.get("conditions") or (), condition, changed=changed)
    return {**fields, "status": status if common is None else {**status, "commonEncodingVersion": common}}


def _condition(generation: int | None, *, is_equal: bool, now: str) -> dict[str, Any]:
    return {
        "type": _EQUAL,
        "status": "True" if is_equal else "False",
        **({"observedGeneration": generation} if generation else {}),
        "lastTransitionTime": now,
        "reason": "CommonEncodingVersionSet" if is_equal else "CommonEncodingVersionUnset",
        "message": "Common encoding version set" if is_equal else "Common encoding version unset",
    }


def _with(conditions: Iterable[dict[str, Any]], condition: dict[str, Any], *, changed: bool) -> list[dict[str, Any]]:
    """Return the conditions with a new condition; if its status is unchanged, the condition keeps its time.

    If `changed` is set, the condition gets a new time even if its status is unchanged.
    """
    found = list(conditions)
    for index, each in enumerate(found):
        if each.get("type") == _EQUAL:
            kept = each.get("status") == condition["status"] and not changed
            time = {"lastTransitionTime": each.get("lastTransitionTime")} if kept else {}
            found[index] = {**condition, **time}
            return found
    return [*found, condition]


class GarbageCollector:
    """Reconciles a StorageVersion, whose name is the key.

    A key with a namespace is the key of a deleted identity Lease.
    """

    def __init__(self, storage_versions: Lister, leases: Lister, clock: Clock) -> None:
        """Create a reconciler that reads StorageVersions and Leases from listers."""
        self._storage_versions = storage_versions
        self._leases = leases
        self._clock = clock

    def reconcile(self, key: Key, client: Client) -> None:
        """Remove stale entries; raises the errors of the API if a write fails."""
        if not key.namespace:
            if (found := self._storage_versions.get(key)) is not None:
                self._remove(found, self._stale(found), client)
        elif self._leases.get(key) is None:
            for each in self._storage_versions.list():
                self._remove(each, [name for name in _servers(each) if name == key.name], client)

    def concerned(self, change: Change) -> Iterable[Key]:
        """Return the key of a StorageVersion with an entry whose API server has no identity Lease."""
        obj = change.new
        return (obj.key,) if obj is not None and self._stale(obj) else ()

    def _stale(self, storage_version: Object) -> list[str]:
        servers = _servers(storage_version)
        return [name for name in servers if not is_identity(self._leases.get(Key(_NAMESPACE, name)))]

    def _remove(self, storage_version: Object, gone: list[str], client: Client) -> None:
        if not gone:
            return
        if set(gone) >= set(_servers(storage_version)):
            client.delete(storage_version)
            return
        now = format_time_seconds(self._clock.now())
        left = Object.from_dict(without_servers(storage_version, gone, now))
        client.update(left.at(storage_version.revision), "status")


def _servers(storage_version: Object) -> list[str]:
    status = storage_version.to_dict().get("status") or {}
    return [each.get("apiServerID") or "" for each in status.get("storageVersions") or ()]


def _deleted_identity(change: Change) -> Iterable[Key]:
    old = change.old
    ended = change.new is None and old is not None and old.namespace == _NAMESPACE and is_identity(old)
    return (change.object.key,) if ended else ()


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    versions, leases = context.informers.informer(STORAGE_VERSIONS), context.informers.informer(LEASES)
    collector = GarbageCollector(versions.lister, leases.lister, context.clock)
    watches = [Watch(versions, collector.concerned, after_sync=True), Watch(leases, _deleted_identity)]
    return assemble(DESCRIPTOR, context, collector, watches)

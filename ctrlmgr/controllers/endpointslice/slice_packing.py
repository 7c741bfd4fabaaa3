"""Distributes endpoints to slices so that as few slices as possible are written.

Guarantees, those of `reconcileByPortMapping` and `finalize` (Kubernetes' `k8s.io/endpointslice/reconciler.go`):
- After the writes, every wanted endpoint is in exactly one slice, and no slice has more than `capacity` endpoints. A
  slice can have more endpoints only if another client added them or the capacity was larger before.
- An unchanged endpoint stays in its slice. A slice whose endpoints are unchanged is not written; a slice that loses all
  endpoints is deleted.
- New endpoints are added first to slices that are written anyway, beginning with the fullest slice. If all remaining
  endpoints fit into one unchanged slice, the endpoints are added to the slice that has the least free space afterwards.
  If no existing slice has room for the remaining endpoints, these endpoints are added to new slices. Endpoints never
  move from one slice to another to balance the slices.
- If one slice would be deleted and another slice created, the first slice is overwritten instead (`recycle`).

Unlike in Go, the distribution does not depend on the order of maps: the same input gives the same slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from msgspec.structs import replace

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.discovery import Endpoint, EndpointPort, EndpointSlice
from ctrlmgr.api.object import Object
from ctrlmgr.controllers.endpointslice.endpoint_groups import Identity, identity


@dataclass(slots=True, eq=False)
class Draft:
    """The desired state of a slice.

    The field `current` is the existing slice, or None if the slice must be created. A draft may share its lists with
    the cache, so code replaces these lists and never changes them. If `relabel` is set, the labels of the slice need an
    update. If `renew` is set, the update keeps only the name of the slice.
    """

    address_type: str
    ports: list[EndpointPort]
    endpoints: list[Endpoint]
    current: Object | None = None
    relabel: bool = False
    renew: bool = False

    @classmethod
    def of(cls, current: Object) -> Draft:
        """Return an existing slice as a draft."""
        view = current.view(EndpointSlice)
        return cls(view.address_type, view.ports or [], view.endpoints or [], current)

    @property
    def differs(self) -> bool:
        """Return whether the draft differs from the existing slice."""
        if self.current is None or self.renew or self.relabel:
            return True
        return self.endpoints != (self.current.view(EndpointSlice).endpoints or [])


@dataclass(slots=True)
class Changes:
    """The writes to slices: creations, updates and deletions."""

    create: list[Draft] = field(default_factory=list)
    update: list[Draft] = field(default_factory=list)
    delete: list[Draft] = field(default_factory=list)
    unchanged: list[Draft] = field(default_factory=list)

    def __iter__(self) -> Iterator[Draft]:
        """Iterate over the slices that exist after the writes."""
        return chain(self.create, self.update, self.unchanged)

    def add(self, other: Changes) -> None:
        """Add the changes in `other` to these changes."""
        self.create += other.create
        self.update += other.update
        self.delete += other.delete
        self.unchanged += other.unchanged


def pack(
    existing: Iterable[Draft],
    desired: dict[Identity, Endpoint],
    new: Callable[[], Draft],
    is_labelled: Callable[[Draft], bool],
    capacity: int,
) -> Changes:
    """Return the changes of the slices that have one set of ports.

    After the returned changes, the slices contain the endpoints in `desired`. The function empties `desired`. The
    function `new` returns an empty slice with these ports. `capacity` is the maximum number of endpoints of a slice.
    """
    changes = Changes()
    for draft in existing:
        _sort(draft, desired, changes, is_labelled)
    if desired:
        for draft in sorted(changes.update, key=_emptiness):
            _fill(draft, desired, capacity)
    while desired:
        found = _closest(changes.unchanged, len(desired), capacity)
        if found is None:
            changes.create.append(found := new())
        else:
            changes.unchanged.remove(found)
            changes.update.append(found)
        found.endpoints = list(found.endpoints)
        _fill(found, desired, capacity)
    return changes


def _sort(
    draft: Draft, wanted: dict[Identity, Endpoint], changes: Changes, is_labelled: Callable[[Draft], bool]
) -> None:
    """Remove the endpoints that a slice already contains from `wanted`, and decide whether the slice must change."""
    kept = []
    changed = False
    for endpoint in draft.endpoints:
        desired = wanted.pop(identity(endpoint), None)
        if desired is not None:
            kept.append(desired)
        changed = changed or desired is None or not is_same(desired, endpoint)
    draft.relabel = not is_labelled(draft)
    if changed and not kept:
        changes.delete.append(draft)
    elif changed or draft.relabel:
        draft.endpoints = kept if changed else list(draft.endpoints)
        changes.update.append(draft)
    else:
        changes.unchanged.append(draft)


def is_same(desired: Endpoint, existing: Endpoint) -> bool:
    """Return whether two endpoints with the same identity are equal (`EndpointsEqualBeyondHash`).

    Hints and the versions of targets are ignored.
    """
    return desired == existing or (
        desired.conditions == existing.conditions
        and desired.node_name == existing.node_name
        and desired.zone == existing.zone
        and _without_version(desired.target_ref) == _without_version(existing.target_ref)
    )


def _without_version(target: ObjectReference | None) -> ObjectReference | None:
    return replace(target, resource_version="") if target is not None and target.resource_version else target


def _emptiness(draft: Draft) -> int:
    return -len(draft.endpoints)


def _closest(drafts: Iterable[Draft], count: int, capacity: int) -> Draft | None:
    """Return the draft that is closest to full after the addition of `count` endpoints.

    The result is None if the endpoints do not fit into any draft.
    """
    if count >= capacity:
        return None
    fitting = [draft for draft in drafts if len(draft.endpoints) + count <= capacity]
    return min(fitting, key=_emptiness, default=None)


def _fill(draft: Draft, desired: dict[Identity, Endpoint], capacity: int) -> None:
    """Move the first endpoints of `desired` into a slice until it is full; the slice must not share its list."""
    room = max(capacity - len(draft.endpoints), 0)
    draft.endpoints += [desired.pop(key) for key in list(islice(desired, room))]


def recycle(changes: Changes, may_stay: Callable[[Draft], bool]) -> None:
    """Replace pairs of a deletion and a creation by an update of the slice to delete.

    The function `may_stay` returns whether a slice may be updated instead of being deleted.
    """
    gone = []
    for draft in changes.delete:
        if changes.create and may_stay(draft):
            renewed = changes.create.pop()
            renewed.current, renewed.renew = draft.current, True
            changes.update.append(renewed)
        else:
            gone.append(draft)
    changes.delete = gone

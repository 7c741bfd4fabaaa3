"""How endpoints are spread over slices so that few slices have to be written.

Guarantees, those of `reconcileByPortMapping` and `finalize` (Kubernetes' `k8s.io/endpointslice/reconciler.go`):
- Afterwards every wanted endpoint is in exactly one slice, and none holds more than `MAX_ENDPOINTS`, unless a client
  else made it so.
- An endpoint stays in the slice that it is in. A slice without a change is not written; one that loses everything goes.
- What is new goes, in this order: into slices that are written anyway, the fullest first; all that is left, if it is
  less than a slice and fits, into the one slice that comes closest to full by it; into new slices. Slices are never
  evened out.
- A slice that would be deleted while another is created is written anew instead (`recycle`).

Unlike in Go nothing depends on the order of maps: the same input gives the same slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from msgspec.structs import replace

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.discovery import Endpoint, EndpointPort, EndpointSlice
from ctrlmgr.api.object import Object
from ctrlmgr.controllers.endpointslice.groups import Identity, identity

MAX_ENDPOINTS = 100
"""How many endpoints a slice holds (`--max-endpoints-per-slice`)."""


@dataclass(slots=True, eq=False)
class Draft:
    """A slice as it is to be.

    `current` is what it was read as (None: it is to be created), and its lists may be those of the cache: they are
    replaced, not changed. `relabel` says that its labels are not right, `renew` that nothing of it stays but its name.
    """

    address_type: str
    ports: list[EndpointPort]
    endpoints: list[Endpoint]
    current: Object | None = None
    relabel: bool = False
    renew: bool = False

    @classmethod
    def of(cls, current: Object) -> Draft:
        """Return the slice as it is."""
        view = current.view(EndpointSlice)
        return cls(view.address_type, view.ports or [], view.endpoints or [], current)

    @property
    def differs(self) -> bool:
        """Whether it is not as it was read."""
        if self.current is None or self.renew or self.relabel:
            return True
        return self.endpoints != (self.current.view(EndpointSlice).endpoints or [])


@dataclass(slots=True)
class Changes:
    """What becomes of slices."""

    create: list[Draft] = field(default_factory=list)
    update: list[Draft] = field(default_factory=list)
    delete: list[Draft] = field(default_factory=list)
    unchanged: list[Draft] = field(default_factory=list)

    def __iter__(self) -> Iterator[Draft]:
        """Return the slices that there will be."""
        return chain(self.create, self.update, self.unchanged)

    def add(self, other: Changes) -> None:
        """Take over the changes of other slices."""
        self.create += other.create
        self.update += other.update
        self.delete += other.delete
        self.unchanged += other.unchanged


def pack(
    existing: Iterable[Draft],
    wanted: dict[Identity, Endpoint],
    new: Callable[[], Draft],
    is_labelled: Callable[[Draft], bool],
) -> Changes:
    """Return what becomes of the slices of one set of ports, which are to hold `wanted`; uses `wanted` up.

    `new` makes an empty slice with these ports.
    """
    changes = Changes()
    for draft in existing:
        _sort(draft, wanted, changes, is_labelled)
    if wanted:
        for draft in sorted(changes.update, key=_emptiness):
            _fill(draft, wanted)
    while wanted:
        found = _closest(changes.unchanged, len(wanted))
        if found is None:
            changes.create.append(found := new())
        else:
            changes.unchanged.remove(found)
            changes.update.append(found)
        found.endpoints = list(found.endpoints)
        _fill(found, wanted)
    return changes


def _sort(
    draft: Draft, wanted: dict[Identity, Endpoint], changes: Changes, is_labelled: Callable[[Draft], bool]
) -> None:
    """Take out of `wanted` what is in a slice already, and say what becomes of the slice by that alone."""
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
    """Compare endpoints of the same identity (`EndpointsEqualBeyondHash`); hints and targets' versions do not count."""
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


def _closest(drafts: Iterable[Draft], count: int) -> Draft | None:
    """Return the one of `drafts` that comes closest to full with `count` endpoints more; None if it fits into none."""
    if count >= MAX_ENDPOINTS:
        return None
    fitting = [draft for draft in drafts if len(draft.endpoints) + count <= MAX_ENDPOINTS]
    return min(fitting, key=_emptiness, default=None)


def _fill(draft: Draft, wanted: dict[Identity, Endpoint]) -> None:
    """Move as many of `wanted` as there is room for, the first ones, into a slice whose list is its own."""
    room = max(MAX_ENDPOINTS - len(draft.endpoints), 0)
    draft.endpoints += [wanted.pop(key) for key in list(islice(wanted, room))]


def recycle(changes: Changes, may_stay: Callable[[Draft], bool]) -> None:
    """Write what is to be created over what is to be deleted and `may_stay`, as far as there is enough of both."""
    gone = []
    for draft in changes.delete:
        if changes.create and may_stay(draft):
            renewed = changes.create.pop()
            renewed.current, renewed.renew = draft.current, True
            changes.update.append(renewed)
        else:
            gone.append(draft)
    changes.delete = gone

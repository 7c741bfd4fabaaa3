"""Computes the changes of objects that many concurrent writes change, just before an append.

For example, every creation in a namespace changes the usage of the namespace's ResourceQuota. If the usage were
computed together with the created object, only one of several concurrent creations would succeed, and the engine would
have to decide the others again. Therefore a write returns `DeferredProposals`, a function that computes the change of
the shared object. The driver calls this function when it appends the write, on the state at that time. Writes in the
same turn of the event loop share one append. The function of each write sees the changes of the writes before it.

Guarantees: deferred proposals are appended together with their write or not at all. Deferred proposals are computed on
the newest known state, and the log refuses the append if that state is outdated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.engine.strategy import View
from ctrlmgr.eventlog.event import Proposal


class DeferredProposals(NamedTuple):
    """Proposals that a write adds to its append when it is appended."""

    place: str
    """The key of the shared object. Writes with the same key are computed one after the other."""
    decide: Callable[[View], Sequence[Proposal]]
    """A function that returns the changes of shared objects. The function raises an `ApiError` to refuse the write."""


class Overlay:
    """A view of the state that includes some changes before they are in the log."""

    def __init__(self, view: View) -> None:
        """Create a view that starts with the state of `view`."""
        self._view = view
        self._changed: dict[tuple[Resource, Key], Proposal] = {}

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return the object with the given key; None if no object has the key."""
        changed = self._changed.get((resource, key))
        return self._view.get(resource, key) if changed is None else changed.object

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace, by key; a namespace of None means all namespaces."""
        found = self._view.list(resource, namespace)
        if not self._changed:
            return found
        changes = ((obj, self._changed.get((resource, obj.key))) for obj in found)
        return [obj if changed is None else changed.object for obj, changed in changes]

    def add(self, proposals: Sequence[Proposal]) -> None:
        """Add changes. A second change of the same object replaces the first change."""
        for proposal in proposals:
            place = (proposal.object.resource, proposal.object.key)
            before = self._changed.get(place)
            expected = proposal.expected if before is None else before.expected
            seen = proposal.object.at(expected or 0)
            self._changed[place] = Proposal(proposal.type, seen, expected, proposal.within)

    @property
    def proposals(self) -> Sequence[Proposal]:
        """The changes that were added, at most one for each object."""
        return tuple(self._changed.values())


def decided(late: Sequence[DeferredProposals], view: View) -> Sequence[Proposal]:
    """Return the proposals that a write adds to its append, computed on `view`.

    If a deferred proposal refuses the write, an `ApiError` is raised.
    """
    overlay = Overlay(view)
    for each in late:
        overlay.add(each.decide(overlay))
    return overlay.proposals

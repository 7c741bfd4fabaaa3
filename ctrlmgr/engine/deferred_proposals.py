"""What is decided at the last moment before an append, because many writes change it at the same time.

The number that a quota has used is such a thing: each creation in a namespace changes it. If it were decided with the
object, all but one of the writes under way at a time would have to be decided again. So a write says how it changes the
shared object (`DeferredProposals`). Its caller evaluates that when it is the write's turn to be appended, on the
state of that moment. Writes of the same turn go into one append: each sees what the one before it made of the object.

Guarantees: what is decided here is in the log together with the write, or neither is; it is decided on the newest
state, and the log refuses it if that was not the newest after all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.engine.strategy import View
from ctrlmgr.eventlog.event import Proposal


class DeferredProposals(NamedTuple):
    """What a write adds to its append."""

    place: str
    """What it shares with others: those of one place take turns."""
    decide: Callable[[View], Sequence[Proposal]]
    """Returns the changes of shared objects; raises the `ApiError` that refuses the write after all."""


class Overlay:
    """A view in which some changes have been made already that the log does not have yet."""

    def __init__(self, view: View) -> None:
        """Lie over `view`, with no changes so far."""
        self._view = view
        self._changed: dict[tuple[Resource, Key], Proposal] = {}

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return one object, None if there is none."""
        changed = self._changed.get((resource, key))
        return self._view.get(resource, key) if changed is None else changed.object

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace (None: of all), by key."""
        found = self._view.list(resource, namespace)
        if not self._changed:
            return found
        changes = ((obj, self._changed.get((resource, obj.key))) for obj in found)
        return [obj if changed is None else changed.object for obj, changed in changes]

    def add(self, proposals: Sequence[Proposal]) -> None:
        """Make changes; of two changes of one object the second takes the place of the first."""
        for proposal in proposals:
            place = (proposal.object.resource, proposal.object.key)
            before = self._changed.get(place)
            expected = proposal.expected if before is None else before.expected
            seen = proposal.object.at(expected or 0)
            self._changed[place] = Proposal(proposal.type, seen, expected, proposal.within)

    @property
    def proposals(self) -> Sequence[Proposal]:
        """The changes that were made, one of each object."""
        return tuple(self._changed.values())


def decided(late: Sequence[DeferredProposals], view: View) -> Sequence[Proposal]:
    """Return what a write adds to its append, decided on `view`; raises the `ApiError` that refuses it."""
    overlay = Overlay(view)
    for each in late:
        overlay.add(each.decide(overlay))
    return overlay.proposals

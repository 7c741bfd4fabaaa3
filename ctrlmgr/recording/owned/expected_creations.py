"""Names and identities for what our controllers make: those of what the recorded ones made in its place.

Pods have random names and uids, and a recording tells by them what kubelets and clients did to which. So an object
that ours makes is called as the recorded one that stands for the same, and has its uid and its time of creation, which
also decide which of several pods goes first. Guarantees: what stands for the same has the same controller and labels,
and is asked for on the same node; each recorded object gives its name once; one that ours makes beyond those keeps its
own name, which the comparison then shows.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.eventlog import EventType, Proposal
from ctrlmgr.recording.owned.admitted import with_account


class _Owner(msgspec.Struct):
    kind: str
    name: str
    controller: bool = False


class _Metadata(msgspec.Struct, rename="camel"):
    generate_name: str = ""
    owner_references: list[_Owner] = []


class _Spec(msgspec.Struct, frozen=True):
    affinity: Any = None


class _Made(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = _Spec()


class ExpectedCreations:
    """What the recorded controllers made, or are about to, that ours have not made yet."""

    def __init__(self) -> None:
        """Expect nothing."""
        self._expected: dict[tuple[Resource, str], dict[str, Object]] = {}
        """By kind and namespace, in the order in which they were made, by uid."""

    def expect(self, obj: Object) -> None:
        """Take note of what a recorded controller made."""
        self._expected.setdefault((obj.resource, obj.namespace), {})[obj.uid] = obj

    def forget(self, obj: Object) -> None:
        """Take note that something is gone: nothing is to be called so any more."""
        self._expected.get((obj.resource, obj.namespace), {}).pop(obj.uid, None)

    def named(self, proposal: Proposal) -> Proposal:
        """Return what is to be appended, as the recorded object that stands for the same, if there is one."""
        if proposal.type is not EventType.ADDED:
            return proposal
        recorded = self._like(proposal.object)
        if recorded is None:
            return proposal
        return msgspec.structs.replace(proposal, object=_incarnated(proposal.object, recorded))

    def _like(self, ours: Object) -> Object | None:
        there = self._expected.get((ours.resource, ours.namespace))
        if not there:
            return None
        stands_for = _place(ours)
        return next((each for each in there.values() if _place(each) == stands_for), None)


def _place(obj: Object) -> tuple[Key, str] | tuple[Any, ...]:
    """Return what two objects have in common that stand for the same: their name, unless that is random."""
    made = obj.view(_Made)
    if not made.metadata.generate_name:
        return obj.key, ""
    owner = next(((each.kind, each.name) for each in made.metadata.owner_references if each.controller), None)
    return owner, made.metadata.generate_name, _labels(obj), made.spec.affinity


def _labels(obj: Object) -> dict[str, str]:
    """Return the labels but for uids of what an object is made for, which may be its own."""
    return {name: value for name, value in obj.labels.items() if not name.endswith("controller-uid")}


def _incarnated(ours: Object, recorded: Object) -> Object:
    """Return our object with a recorded one's name, uid and time of creation; its uid may stand anywhere in it."""
    body = ours.body.replace(ours.uid.encode(), recorded.uid.encode())
    created = recorded.metadata.creation_timestamp
    made = Object(ours.resource, body).with_metadata(name=recorded.name, creation_timestamp=created)
    return with_account(made, recorded) if made.resource == PODS else made

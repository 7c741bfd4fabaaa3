"""Gives each object that ctrlmgr's controllers create the name and uid of its recorded counterpart.

Recorded names are necessary because pods have random names and uids, to which recorded writes of kubelets and clients
refer. The object also gets the creation time of its counterpart, because the creation time determines which pods are
deleted first. Guarantees: a counterpart has the same controller and labels, and requires the same node. Each recorded
object is the counterpart of at most one created object. A created object without a counterpart keeps its own name, and
the comparison reports this object.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.eventlog import EventType, Proposal
from ctrlmgr.recording.owned.admission_fields import with_account


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
    """The recorded creations that ctrlmgr's controllers have not repeated yet."""

    def __init__(self) -> None:
        """Create an empty instance."""
        self._expected: dict[tuple[Resource, str], dict[str, Object]] = {}
        """The recorded objects by resource and namespace; each value maps uids to objects in the order of their
        creation.
        """

    def expect(self, obj: Object) -> None:
        """Add an object that a recorded controller created."""
        self._expected.setdefault((obj.resource, obj.namespace), {})[obj.uid] = obj

    def forget(self, obj: Object) -> None:
        """Remove a deleted object, whose name no created object may get any more."""
        self._expected.get((obj.resource, obj.namespace), {}).pop(obj.uid, None)

    def named(self, proposal: Proposal) -> Proposal:
        """Return the proposal with the identity of the recorded counterpart, if one exists."""
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
    """Return a key that is equal for an object and its counterpart.

    The key contains the object's name unless the name is random.
    """
    made = obj.view(_Made)
    if not made.metadata.generate_name:
        return obj.key, ""
    owner = next(((each.kind, each.name) for each in made.metadata.owner_references if each.controller), None)
    return owner, made.metadata.generate_name, _labels(obj), made.spec.affinity


def _labels(obj: Object) -> dict[str, str]:
    """Return the labels, except labels that contain a controller's uid."""
    return {name: value for name, value in obj.labels.items() if not name.endswith("controller-uid")}


def _incarnated(ours: Object, recorded: Object) -> Object:
    """Return our object with the name, uid and creation time of a recorded object.

    The uid is replaced in all fields.
    """
    body = ours.body.replace(ours.uid.encode(), recorded.uid.encode())
    created = recorded.metadata.creation_timestamp
    made = Object(ours.resource, body).with_metadata(name=recorded.name, creation_timestamp=created)
    return with_account(made, recorded) if made.resource == PODS else made

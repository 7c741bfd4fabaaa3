"""The writes that a decision of the volume binder results in, and the new states of claims and volumes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import (
    AVAILABLE,
    BOUND_BY_CONTROLLER,
    FAILED,
    annotation,
)

Fields = Mapping[str, Any]
NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class BinderEvent(NamedTuple):
    """An Event about the claim or the volume."""

    type: str
    reason: str
    message: str
    about_volume: bool = False
    """Whether the Event of a volume's reconcile is about the volume, and not about the volume's claim."""


class Plan(NamedTuple):
    """The writes in their order: first the volume, then the claim, then the Events, then the new volume."""

    volume: Fields | None = None
    """The volume in its desired state; None if the volume does not change."""
    claim: Fields | None = None
    events: tuple[BinderEvent, ...] = ()
    creates: Fields | None = None
    """The volume to create for the claim."""
    created_events: tuple[BinderEvent, ...] = ()
    """The Events about the claim after the creation of the volume."""
    deletes: bool = False
    """Whether the volume must be deleted."""
    recycles: bool = False
    """Whether the content of the volume must be deleted, so that another claim can use the volume."""
    wakes_claim: bool = False
    """Whether to reconcile the claim to which the volume refers."""


NOTHING: Final = Plan()
"""A plan that writes no object."""


def with_status(claim: Fields, phase: str, volume: Fields | None) -> Fields:
    """Return a copy of a claim with the given phase.

    The copy also has the status fields that are copied from the claim's volume.

    The capacity is copied only when the claim becomes bound.
    """
    status = dict(claim.get("status") or {})
    changes, status["phase"] = status.get("phase") != phase, phase
    if volume is None:
        for each in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
            status.pop(each, None)
        return {**claim, "status": status}
    spec = volume["spec"]
    status["accessModes"] = spec.get("accessModes")
    if changes:
        status["capacity"] = spec.get("capacity")
        if spec.get("volumeAttributesClassName"):
            status["currentVolumeAttributesClassName"] = spec["volumeAttributesClassName"]
    return {**claim, "status": status}


def unbound(volume: Fields) -> Fields:
    """Return the changed state of a volume whose claim is bound to another volume.

    If the controller set the volume's reference, the reference is removed. If a user set the reference, only the uid in
    the reference is removed.
    """
    found = deepcopy(dict(volume))
    if annotation(volume, BOUND_BY_CONTROLLER) is not None:
        del found["spec"]["claimRef"]
        del found["metadata"]["annotations"][BOUND_BY_CONTROLLER]
    else:
        del found["spec"]["claimRef"]["uid"]
    return in_phase(found, AVAILABLE)


def fail(volume: Fields, reason: str, message: str) -> Plan:
    """Return the writes for a volume that cannot be reclaimed; the Event is only for a volume that was not Failed."""
    if (volume.get("status") or {}).get("phase") == FAILED:
        return Plan(volume)
    return Plan(in_phase(volume, FAILED, message), events=(BinderEvent(WARNING, reason, message, about_volume=True),))


def in_phase(volume: Fields, phase: str, message: str = "") -> Fields:
    """Return a volume in a phase; the message stays if the volume is already in this phase."""
    status = dict(volume.get("status") or {})
    if status.get("phase") == phase:
        return volume
    status["phase"] = phase
    status.pop("message", None)
    if message:
        status["message"] = message
    return {**volume, "status": status}


def annotated(obj: Fields, desired: Mapping[str, str]) -> Fields:
    """Return a claim or a volume with these annotations in addition to its own."""
    annotations = {**(obj["metadata"].get("annotations") or {}), **desired}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}

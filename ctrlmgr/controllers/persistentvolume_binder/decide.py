"""Decides the writes that bind or reclaim a claim or a volume, with pure functions.

Guarantees, which are the same as in Kubernetes' `pkg/controller/volume/persistentvolume/pv_controller.go`:
- A binding is written to the volume first, and then to the claim. The fields of each object are written before its
  status. If a binding is interrupted at any step, the next reconcile continues it.
- A claim and a volume are bound if they refer to each other; the uid in a volume's `claimRef` identifies the claim.
- If a user set a reference, the reference is kept. The controller only removes references that it has marked as its own
  with annotations.
- A claim that has lost its volume stays Lost. A volume whose claim was deleted is never bound to another claim.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from ctrlmgr.controllers.persistentvolume_binder.binder_plans import (
    NORMAL,
    NOTHING,
    WARNING,
    BinderEvent,
    Fields,
    Plan,
    annotated,
    fail,
    in_phase,
    unbound,
    with_status,
)
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import (
    AVAILABLE,
    BIND_COMPLETED,
    BOUND,
    BOUND_BY_CONTROLLER,
    ELSEWHERE,
    FAILED,
    HOST_PATH,
    IN_TREE,
    LOST,
    MIGRATED,
    MIGRATED_TO,
    PENDING,
    PROVISIONED_BY,
    PROVISIONERS,
    RELEASED,
    SELECTED_NODE,
    annotation,
    class_of,
    names_class,
)
from ctrlmgr.controllers.persistentvolume_binder.in_tree_volumes import (
    HostPathLookups,
    migrated,
    not_provisioned,
    provision_host_path,
    with_deletion_finalizers,
)
from ctrlmgr.controllers.persistentvolume_binder.volume_matching import best, is_bound_to, mismatch, modes_differ

_TEMPORARY: Final = re.compile(r"^/tmp/.+$")
"""The directories in which Kubernetes can delete a volume of type `hostPath`."""


class BinderLookups(HostPathLookups, Protocol):
    """The interface of the lookups that decisions need."""

    def possible_volumes(self, claim: Fields) -> list[Fields]:
        """Return the volumes that are possible for a claim, keyed by the volume's name.

        The candidates are the volumes that refer to the claim, and the volumes of the claim's class that refer to no
        claim.
        """

    def claim(self, namespace: str, name: str) -> Fields | None:
        """Return the claim with this key; None if the claim does not exist."""

    def storage_class(self, name: str) -> Fields | None:
        """Return the storage class with this name; None if it does not exist."""

    def default_class(self) -> str | None:
        """Return the name of the default storage class; None if there is no default class."""

    @property
    def provisions(self) -> bool:
        """Whether the controller asks provisioners for volumes."""

    def waiting_pods(self, claim: Fields) -> list[str]:
        """Return the names of the pods that use a claim and are not scheduled yet."""


# The following functions decide the writes for claims.


def for_claim(claim: Fields, lookups: BinderLookups) -> Plan:
    """Return the writes that a claim needs."""
    claim = migrated(claim, annotation(claim, PROVISIONERS[1]) or annotation(claim, PROVISIONERS[0]))
    if annotation(claim, BIND_COMPLETED) is not None:
        return _bound(claim, lookups)
    if not claim["spec"].get("volumeName"):
        return _without_volume(claim, lookups)
    volume = lookups.volume(claim["spec"]["volumeName"])
    if volume is None:
        return Plan(claim=with_status(claim, PENDING, None))
    if volume["spec"].get("claimRef") is None:
        problem = mismatch(volume, claim)
        if not problem:
            return _bind(volume, claim)
        message = f'Cannot bind to requested volume "{volume["metadata"]["name"]}": {problem}'
        return Plan(claim=with_status(claim, PENDING, None), events=(BinderEvent(WARNING, "VolumeMismatch", message),))
    if is_bound_to(volume, claim):
        return _bind(volume, claim)
    if annotation(claim, BOUND_BY_CONTROLLER) is not None:
        return NOTHING  # A client that has removed the other annotation must restore it.
    message = f'volume "{volume["metadata"]["name"]}" already bound to a different claim.'
    return Plan(claim=with_status(claim, PENDING, None), events=(BinderEvent(WARNING, "FailedBinding", message),))


def _without_volume(claim: Fields, lookups: BinderLookups) -> Plan:
    found = lookups.storage_class(class_of(claim)) if class_of(claim) else None
    delayed = found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"
    volume = best(claim, lookups.possible_volumes(claim), delayed=delayed)
    if volume is not None:
        return _bind(volume, claim)
    if not names_class(claim) and (name := lookups.default_class()) is not None:
        return Plan(claim={**claim, "spec": {**claim["spec"], "storageClassName": name}})
    if delayed and annotation(claim, SELECTED_NODE) is None:
        return Plan(claim=with_status(claim, PENDING, None), events=(_waits(lookups.waiting_pods(claim)),))
    if class_of(claim) and not lookups.provisions:
        return Plan(claim=with_status(claim, PENDING, None))
    if class_of(claim):
        return _provision(claim, found, lookups)
    message = "no persistent volumes available for this claim and no storage class is set"
    return Plan(claim=with_status(claim, PENDING, None), events=(BinderEvent(NORMAL, "FailedBinding", message),))


def _waits(pods: list[str]) -> BinderEvent:
    if not pods:
        return BinderEvent(NORMAL, "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    whom = f"pods {','.join(pods)}" if len(pods) > 1 else f"pod {pods[0]}"
    return BinderEvent(NORMAL, "WaitForPodScheduled", f"waiting for {whom} to be scheduled")


def _provision(claim: Fields, storage_class: Fields | None, lookups: BinderLookups) -> Plan:
    """Request that the storage class's provisioner creates a volume, or create a volume of type `hostPath`."""
    if storage_class is None:
        return not_provisioned(f'storageclass.storage.k8s.io "{class_of(claim)}" not found')
    name = storage_class.get("provisioner", "")
    if name == HOST_PATH:
        return provision_host_path(claim, storage_class, lookups)
    if name.startswith(IN_TREE) and name not in MIGRATED:
        return not_provisioned(f"no volume plugin matched name: {name}")
    name = MIGRATED.get(name, name)
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{name}' or manually by the system "
        "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
        "registered."
    )
    events = (BinderEvent(NORMAL, "ExternalProvisioning", message),)
    if annotation(claim, PROVISIONERS[1]) == name:
        return Plan(events=events)
    return Plan(claim=annotated(claim, dict.fromkeys(PROVISIONERS, name)), events=events)


def _bound(claim: Fields, lookups: BinderLookups) -> Plan:
    """Return the writes for a claim that was bound before."""
    name = claim["spec"].get("volumeName")
    if not name:
        return _lose(
            claim, "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
        )
    volume = lookups.volume(name)
    if volume is None:
        return _lose(claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
    reference = volume["spec"].get("claimRef")
    if reference is None or reference.get("uid") == claim["metadata"]["uid"]:
        return _bind(volume, claim)
    message = "Two claims are bound to the same volume, this one is bound incorrectly"
    return _lose(claim, "ClaimMisbound", message)


def _lose(claim: Fields, reason: str, message: str) -> Plan:
    is_new = (claim.get("status") or {}).get("phase") != LOST
    return Plan(claim=with_status(claim, LOST, None), events=(BinderEvent(WARNING, reason, message),) if is_new else ())


# Binding


def _bind(volume: Fields, claim: Fields) -> Plan:
    return Plan(in_phase(reserved(volume, claim), BOUND), _bound_claim(claim, volume))


def reserved(volume: Fields, claim: Fields) -> Fields:
    """Return a volume that refers to a claim, with an annotation if the controller set the reference."""
    meta = claim["metadata"]
    reference = volume["spec"].get("claimRef") or {}
    bound = volume
    if [reference.get(each) for each in ("namespace", "name", "uid")] != [
        meta[x] for x in ("namespace", "name", "uid")
    ]:
        named = {
            "kind": "PersistentVolumeClaim",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
            "apiVersion": "v1",
            "resourceVersion": meta["resourceVersion"],
        }
        bound = {**volume, "spec": {**volume["spec"], "claimRef": named}}
    if not is_bound_to(volume, claim):
        bound = annotated(bound, {BOUND_BY_CONTROLLER: "yes"})
    return bound


def _bound_claim(claim: Fields, volume: Fields) -> Fields:
    name = volume["metadata"]["name"]
    bound = claim
    if claim["spec"].get("volumeName") != name:
        bound = annotated({**claim, "spec": {**claim["spec"], "volumeName": name}}, {BOUND_BY_CONTROLLER: "yes"})
    return with_status(annotated(bound, {BIND_COMPLETED: "yes"}), BOUND, volume)


# The following functions decide the writes for volumes.


def for_volume(volume: Fields, lookups: BinderLookups) -> Plan:
    """Return the writes that a volume needs."""
    volume = with_deletion_finalizers(migrated(volume, annotation(volume, PROVISIONED_BY)))
    reference = volume["spec"].get("claimRef")
    if reference is None or not reference.get("uid"):
        return Plan(in_phase(volume, AVAILABLE))
    claim = lookups.claim(reference.get("namespace", ""), reference.get("name", ""))
    if claim is None or claim["metadata"]["uid"] != reference["uid"]:
        return _reclaim(volume)
    name = claim["spec"].get("volumeName")
    if not name:
        if modes_differ(volume, claim):
            return Plan(events=_different_modes(volume, claim))
        return Plan(wakes_claim=True)
    if name == volume["metadata"]["name"]:
        return Plan(in_phase(volume, BOUND))
    is_provisioned = annotation(volume, PROVISIONED_BY) is not None
    if is_provisioned and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
        return _reclaim(volume)
    return Plan(unbound(volume))


def _different_modes(volume: Fields, claim: Fields) -> tuple[BinderEvent, ...]:
    one, other = volume["metadata"]["name"], claim["metadata"]["name"]
    reason = "due to incompatible volumeMode."
    return (
        BinderEvent(
            WARNING,
            "VolumeMismatch",
            f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{other}" {reason}',
            about_volume=True,
        ),
        BinderEvent(
            WARNING,
            "VolumeMismatch",
            f'Cannot bind PersistentVolume "{one}" to requested PersistentVolumeClaim {reason}',
        ),
    )


def _reclaim(volume: Fields) -> Plan:
    """Return the writes for a volume whose claim was deleted, according to the volume's reclaim policy."""
    if (volume.get("status") or {}).get("phase") not in (RELEASED, FAILED):
        volume = in_phase(volume, RELEASED)
    policy = volume["spec"].get("persistentVolumeReclaimPolicy")
    if annotation(volume, MIGRATED_TO) or policy == "Retain":
        return Plan(volume)
    if policy == "Recycle":
        return Plan(volume, recycles=True)
    if policy != "Delete":
        return fail(volume, "VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy")
    problem = _undeletable(volume)
    if problem is None:
        return Plan(volume)
    return fail(volume, "VolumeFailedDelete", problem) if problem else Plan(volume, deletes=True)


def _undeletable(volume: Fields) -> str | None:
    """Return the reason why a volume cannot be deleted.

    The result is an empty string if the volume can be deleted, and None if an external provisioner deletes it.
    """
    provisioner, spec = annotation(volume, PROVISIONED_BY), volume["spec"]
    if provisioner and provisioner != HOST_PATH:
        return f"no volume plugin matched name: {provisioner}" if provisioner.startswith(IN_TREE) else None
    if not ELSEWHERE.isdisjoint(spec):
        return None
    if "hostPath" in spec:
        path = spec["hostPath"].get("path", "")
        allowed = _TEMPORARY.match(path)
        return "" if allowed else f"host_path deleter only supports /tmp/.+ but received provided {path}"
    reason = "no deletable volume plugin matched" if "nfs" in spec else "no volume plugin matched"
    return f'error getting deleter volume plugin for volume "{volume["metadata"]["name"]}": {reason}'

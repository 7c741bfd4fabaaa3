"""Decides the owner of a claim of a StatefulSet: no owner, the StatefulSet, or the pod that was scaled away.

The claim is deleted together with its owner. Source: Kubernetes' `pkg/controller/statefulset/stateful_set_utils.go`
(`isClaimOwnerUpToDate` and related functions), KEP 1847.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.controllers.statefulset.identity import ordinal_of
from ctrlmgr.controllers.statefulset.view import API_VERSION, KIND, StatefulSet
from ctrlmgr.controllers.workloads.controller_ref_manager import Owner


def _references(claim: Object) -> list[OwnerReference]:
    return claim.metadata.owner_references or []


def _is_to_set(reference: OwnerReference, stateful_set: Object) -> bool:
    return (reference.api_version, reference.kind, reference.name) == (API_VERSION, KIND, stateful_set.name)


def _is_to_pod(reference: OwnerReference, pod: Object) -> bool:
    return (reference.api_version, reference.kind, reference.name) == ("v1", "Pod", pod.name)


def is_stale_for_pod(claim: Object, pod: Object) -> bool:
    """Return whether a claim belongs to an earlier pod of the same name, and will be deleted together with that pod."""
    reference = next((each for each in _references(claim) if _is_to_pod(each, pod)), None)
    return reference is not None and reference.uid != pod.uid


def _is_stale_for_set(claim: Object, stateful_set: Object) -> bool:
    reference = next((each for each in _references(claim) if _is_to_set(each, stateful_set)), None)
    return reference is not None and reference.uid != stateful_set.uid


def has_unexpected_controller(claim: Object, stateful_set: Object, pod: Object) -> bool:
    """Return whether a retention policy deletes the claim, but another object controls the claim."""
    policy = stateful_set.view(StatefulSet).retention
    if not policy.deletes_with_set and not policy.deletes_with_pod:
        return False
    for each in _references(claim):
        if _is_to_set(each, stateful_set) or _is_to_pod(each, pod):
            if each.uid not in (stateful_set.uid, pod.uid):
                return True
        elif each.controller:
            return True
    return False


def is_up_to_date(claim: Object, stateful_set: Object, pod: Object) -> bool:
    """Return whether a claim already has the owners that the policy requires, or must not be changed."""
    if _is_stale_for_set(claim, stateful_set) or is_stale_for_pod(claim, pod):
        return True
    uids = {each.uid: each for each in _references(claim)}
    ours = [uids[uid] for uid in (stateful_set.uid, pod.uid) if uid and uid in uids]
    if has_unexpected_controller(claim, stateful_set, pod):
        return not ours
    if any(not each.controller for each in ours):
        return False
    wants_set, wants_pod = _desired_owners(stateful_set, pod)
    return (stateful_set.uid in uids, bool(pod.uid) and pod.uid in uids) == (wants_set, wants_pod)


def _desired_owners(stateful_set: Object, pod: Object) -> tuple[bool, bool]:
    """Return two values: whether the StatefulSet must own the pod's claims, and whether the pod must own them."""
    view = stateful_set.view(StatefulSet)
    is_scaled_away = view.retention.deletes_with_pod and ordinal_of(pod) not in view.ordinals
    return view.retention.deletes_with_set and not is_scaled_away, is_scaled_away


def with_owner(claim: Object, stateful_set: Object, pod: Object) -> Object:
    """Return a copy of a claim with the owners that the policy requires.

    No owner is set if another object controls the claim.
    """
    fields: dict[str, Any] = claim.to_dict()
    current: list[Mapping[str, Any]] = fields["metadata"].get("ownerReferences") or []
    pairs = zip(current, _references(claim), strict=True)
    kept = [raw for raw, each in pairs if not (_is_to_set(each, stateful_set) or _is_to_pod(each, pod))]
    if not has_unexpected_controller(claim, stateful_set, pod):
        wants_set, wants_pod = _desired_owners(stateful_set, pod)
        if wants_pod:
            kept.append(Owner(pod, "v1", "Pod").reference())
        if wants_set:
            kept.append(Owner(stateful_set, API_VERSION, KIND).reference())
    fields["metadata"]["ownerReferences"] = kept
    return Object.from_dict(fields)

"""Decides about the resource claims of pods: their names, which claims to create, and which users remain.

Source: Kubernetes' `pkg/controller/resourceclaim/controller.go`, and `resourceclaim` of `dynamic-resource-allocation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.workloads.controlled_pods import is_controlled_by
from ctrlmgr.errors import CtrlmgrError

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer of ResourceClaims that the scheduler has allocated."""
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation which, on a claim from a template, contains the name of the pod's entry."""
_LONGEST_BASE: Final = 57
"""The maximum length of the base of a generated name. After the base, there is room for a hyphen and five random
characters.
"""
_ENDED: Final = ("Succeeded", "Failed")
_MENTIONS: Final = (b'"resourceClaims"', b'"extendedResourceClaimStatus"')
"""The body of every pod with resource claims contains at least one of these byte sequences."""


class PodClaim(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An entry for a claim in a pod's spec (v1 PodResourceClaim)."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _Named(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None


class _Extended(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_claim_name: str = ""


class _PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    resource_claims: list[PodClaim] = []


class _PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    resource_claim_statuses: list[_Named] | None = None
    extended_resource_claim_status: _Extended | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


_decode = msgspec.json.Decoder(_Pod).decode  # The view is not cached, because other controllers decode other fields.


class NotCreatedError(CtrlmgrError):
    """Raised if the claim for a template has not been created yet."""


class ClaimingPod(NamedTuple):
    """A pod with resource claims, and its decoded fields."""

    pod: Object
    view: _Pod

    @classmethod
    def of(cls, pod: Object) -> ClaimingPod | None:
        """Decode a pod; return None if the pod has no resource claims."""
        if not any(map(pod.mentions, _MENTIONS)):
            return None
        view = _decode(pod.body)
        has_claims = view.spec.resource_claims or view.status.extended_resource_claim_status is not None
        return cls(pod, view) if has_claims else None

    @property
    def claims(self) -> list[PodClaim]:
        """The pod's entries for resource claims."""
        return self.view.spec.resource_claims

    @property
    def is_bound(self) -> bool:
        """Return whether the pod is bound to a node."""
        return bool(self.view.spec.node_name)

    @property
    def is_done(self) -> bool:
        """Return whether no container of the pod runs or will ever run (`isPodDone`)."""
        return self.view.status.phase in _ENDED or (self.pod.is_terminating and not self.is_bound)

    @property
    def may_get_claims(self) -> bool:
        """Return whether claims are created for the pod, because it has neither ended nor been deleted."""
        return not self.pod.is_terminating and self.view.status.phase not in _ENDED

    def name_of(self, claim: PodClaim) -> str | None:
        """Return the name of the claim for an entry; None if the entry needs no claim.

        Raises `NotCreatedError` if the claim does not exist yet, and `CtrlmgrError` if the form of the entry is
        unknown.
        """
        if claim.resource_claim_name is not None:
            return claim.resource_claim_name
        where = f'pod "{self.pod.namespace}/{self.pod.name}"'
        if claim.resource_claim_template_name is None:
            raise CtrlmgrError(f'{where}, spec.resourceClaim "{claim.name}": unsupported API')
        for each in self.view.status.resource_claim_statuses or ():
            if each.name == claim.name:
                return each.resource_claim_name
        raise NotCreatedError(f"{where}: ResourceClaim not created yet")

    def names(self) -> Iterator[str]:
        """Yield the names of the pod's existing claims, except the claim for extended resources."""
        for each in self.claims:
            try:
                name = self.name_of(each)
            except CtrlmgrError:
                continue
            if name is not None:
                yield name

    @property
    def extended(self) -> str:
        """The name of the claim for the pod's extended resources; empty if there is no such claim."""
        status = self.view.status.extended_resource_claim_status
        return status.resource_claim_name if status is not None else ""

    def work(self, claim_of: Callable[[str], Object | None]) -> bool:
        """Return whether the pod must be reconciled, because a claim must be created or reserved (`podNeedsWork`)."""
        return self.may_get_claims and any(self._needs(each, claim_of) for each in self.claims)

    def _needs(self, entry: PodClaim, claim_of: Callable[[str], Object | None]) -> bool:
        try:
            name = self.name_of(entry)
        except CtrlmgrError:
            return True
        if name is None:
            return False
        claim = claim_of(name)
        if claim is None:
            return entry.resource_claim_template_name is not None
        if entry.resource_claim_name is None and not is_controlled_by(claim, self.pod):
            return False
        return self.is_bound and needs_reservation(claim, self.pod)


class Consumer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A user of a claim (ResourceClaimConsumerReference)."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""

    @property
    def is_pod(self) -> bool:
        """Return whether the user of the claim is a pod."""
        return not self.api_group and self.resource == "pods"


class _ClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    allocation: dict[str, msgspec.Raw] | None = None
    reserved_for: list[Consumer] | None = None


class Claim(msgspec.Struct, frozen=True, gc=False):
    """The fields of a ResourceClaim that the controller reads."""

    status: _ClaimStatus = _ClaimStatus()

    @property
    def consumers(self) -> list[Consumer]:
        """The users of the claim."""
        return self.status.reserved_for or []


def needs_reservation(claim: Object, pod: Object) -> bool:
    """Return whether a claim is allocated but not reserved for a pod."""
    view = claim.view(Claim)
    return view.status.allocation is not None and all(each.uid != pod.uid for each in view.consumers)


def reserved(claim: Object, pod: Object) -> dict[str, Any]:
    """Return a copy of a claim that is reserved for the pod, in addition to the claim's other users."""
    fields = claim.to_dict()
    consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
    status = fields["status"]
    return {**fields, "status": {**status, "reservedFor": [*(status.get("reservedFor") or ()), consumer]}}


def owning_pod(claim: Object) -> tuple[str, str] | None:
    """Return the name and the uid of the pod for which a claim was created; None if there is no such pod."""
    for each in claim.metadata.owner_references or ():
        if each.controller and each.api_version == "v1" and each.kind == "Pod":
            return each.name, each.uid
    return None


def claim_for(pod: Object, entry: str, template: Object) -> dict[str, Any]:
    """Return the claim that must be created from a template for an entry of a pod."""
    spec = template.to_dict()["spec"]
    given: Mapping[str, Any] = spec.get("metadata") or {}
    metadata = {
        "generateName": _base_name(pod.name, entry),
        "namespace": pod.namespace,
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM: entry},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec["spec"]}


def _base_name(pod: str, entry: str) -> str:
    """Return the base of a generated claim's name, `POD-ENTRY-`.

    If the base of the name is too long, the names of pod and entry are truncated in proportion to their lengths.
    """
    base = f"{pod}-{entry}-"
    if len(base) <= _LONGEST_BASE:
        return base
    cut = pod[: len(pod) * _LONGEST_BASE // len(base)]
    return f"{cut}-{entry[: len(entry) * _LONGEST_BASE // len(base)]}"


def needs_admin_access(claim: Mapping[str, Any]) -> bool:
    """Return whether a claim's spec requests admin access.

    A request has the field `adminAccess`; its alternatives (`firstAvailable`) do not have it.
    """
    requests = (claim.get("devices") or {}).get("requests") or ()
    return any((each.get("exactly") or {}).get("adminAccess") for each in requests)

"""The strategy of pods, including pods that no kubelet manages.

When a pod on a node is deleted, it exists until its kubelet (or the simulated kubelet) deletes it again with a grace
period of 0. Pods without a node and terminated pods are deleted immediately.

Source: Kubernetes `pkg/registry/core/pod/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ctrlmgr.api.field import ROOT, FieldError, Path
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.ip_validation import ip_warnings, is_canonical_ipv4
from ctrlmgr.engine.validation.name_formats import dns1123_label
from ctrlmgr.kinds.core.pod.annotations import apply_apparmor_annotations
from ctrlmgr.kinds.core.pod.defaults import default_pod, default_pod_status
from ctrlmgr.kinds.core.pod.pod_conditions import set_condition
from ctrlmgr.kinds.core.pod.pod_resources import quality_of_service
from ctrlmgr.kinds.core.pod.resize import keep_all_but_resources, validate_resize
from ctrlmgr.kinds.core.pod.scheduling import merge_label_keys
from ctrlmgr.kinds.core.pod.spec_updates import (
    keep_all_but_ephemeral,
    validate_ephemeral_update,
    validate_pod_update,
)
from ctrlmgr.kinds.core.pod.status import prepare_status, validate_status_update
from ctrlmgr.kinds.core.pod.validation import validate_new_pod, validate_pod
from ctrlmgr.kinds.core.pod.warnings import pod_warnings

_ENDED = ("Succeeded", "Failed")
_GATED = "Scheduling is blocked due to non-empty scheduling gates"
_HOSTNAME = (
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
    "a DNS label is recommended: "
)
_PREPARE = {
    "status": prepare_status,
    "ephemeralcontainers": keep_all_but_ephemeral,
    "resize": keep_all_but_resources,
}
_VALIDATE = {
    "status": validate_status_update,
    "ephemeralcontainers": validate_ephemeral_update,
    "resize": validate_resize,
}


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    restart_policy: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    host_network: bool = False
    termination_grace_period_seconds: int | None = None


class _Status(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    nominated_node_name: str = ""


class _Pod(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(_Pod).decode


class PodStrategy(Strategy):
    """The strategy of the kind v1 Pod."""

    has_generation = True
    returns_deleted = True
    fields = (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
        "spec.host",
    )

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the pod spec, and make the IP address fields of the status agree."""
        default_pod(obj)

    def default_status(self, obj: Unstructured) -> None:
        """Set the defaults of the pod's status only."""
        default_pod_status(obj)

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the initial status of a pod."""
        spec = obj["spec"]
        if spec.get("affinity") or spec.get("topologySpreadConstraints"):
            merge_label_keys(obj)
        if metadata_of(obj).get("annotations"):
            ctx.warnings += apply_apparmor_annotations(obj)
        status: dict[str, Any] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            set_condition(status, ctx.now, "PodScheduled", "False", "SchedulingGated", _GATED)
        obj["status"] = status

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Keep the fields of the pod that a write to the current subresource must not change."""
        if prepare := _PREPARE.get(ctx.subresource):
            prepare(new, old)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the spec and annotations of a new pod; `validate_update` validates an updated pod."""
        if ctx.old is not None:
            return []
        return validate_pod(obj) + validate_new_pod(obj)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate the update of a pod according to the rules for the subresource."""
        if not ctx.subresource:
            return validate_pod_update(new, old, lambda: ctx.sent_at("spec"))
        check = _VALIDATE.get(ctx.subresource)
        return check(new, old) if check else []

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return the warnings for a new pod; for a status, warn about IP addresses that are not in canonical form."""
        if old is None:
            problems = dns1123_label(metadata_of(obj).get("name") or "")
            named = [f"{_HOSTNAME}[{' '.join(problems)}]"] if problems else []
            return named + pod_warnings(obj, ROOT)
        if ctx.subresource != "status":
            return []
        status = obj.get("status") or {}
        return [
            warning
            for field in ("podIPs", "hostIPs")
            for index, address in enumerate(status.get(field) or ())
            if not is_canonical_ipv4(ip := address.get("ip") or "")
            for warning in ip_warnings(Path("status").child(field).at(index).child("ip"), ip)
        ]

    def grace_period(self, obj: Object, seconds: int | None) -> int:
        """Return the requested grace period, or the pod's grace period if none is requested.

        If the pod has no running container on a node, return 0.
        """
        pod = _decode(obj.body)
        if not pod.spec.node_name or pod.status.phase in _ENDED:
            return 0
        period = pod.spec.termination_grace_period_seconds if seconds is None else seconds
        return 1 if (period or 0) < 0 else period or 0

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the fields of a pod that field selectors support, with their values."""
        spec, status = (pod := _decode(obj.body)).spec, pod.status
        return {
            "spec.nodeName": spec.node_name,
            "spec.host": spec.node_name,
            "spec.restartPolicy": spec.restart_policy,
            "spec.schedulerName": spec.scheduler_name,
            "spec.serviceAccountName": spec.service_account_name,
            "spec.hostNetwork": "true" if spec.host_network else "false",
            "status.phase": status.phase,
            "status.podIP": status.pod_ip,
            "status.nominatedNodeName": status.nominated_node_name,
        }

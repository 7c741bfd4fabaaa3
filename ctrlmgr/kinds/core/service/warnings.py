"""Warns about fields of valid Services that are deprecated or have no effect (`pkg/api/service/warnings.go`)."""

from __future__ import annotations

from ctrlmgr.api.field import Path
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.api.warning_limits import limited_warnings
from ctrlmgr.engine.validation.ip_validation import canonical_ip, cidr_warnings, ip_warnings
from ctrlmgr.kinds.core.service.spec import CLUSTER_IP, EXTERNAL_NAME, NONE, items
from ctrlmgr.kinds.core.service.validation import TOPOLOGY_HINTS, TOPOLOGY_MODE

_SPEC = Path("spec")


def service_warnings(service: Unstructured) -> list[str]:
    """Return the warnings for a valid Service."""
    spec = service["spec"]
    found: list[str] = []
    if TOPOLOGY_HINTS in (service["metadata"].get("annotations") or ()):
        found.append(f"annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead")
    if spec.get("clusterIP") != NONE:
        found += _spelling(spec, "clusterIPs")
    elif spec.get("type") == CLUSTER_IP:
        found += _ignored_when_headless(spec)
    if spec.get("externalIPs"):
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
        found += _spelling(spec, "externalIPs")
    if spec.get("loadBalancerIP"):
        found += ip_warnings(_SPEC.child("loadBalancerIP"), spec["loadBalancerIP"])
    ranges = enumerate(items(spec, "loadBalancerSourceRanges"))
    path = _SPEC.child("loadBalancerSourceRanges")
    found += limited_warnings(each for index, text in ranges for each in cidr_warnings(path.at(index), text))
    return found + _of_another_type(spec)


def status_warnings(service: Unstructured) -> list[str]:
    """Return the warnings for a valid status of a Service."""
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    path = Path("status.loadBalancer.ingress")
    return [each for at, point in enumerate(ingress) for each in ip_warnings(path.at(at), point.get("ip") or "")]


def _spelling(spec: Unstructured, field: str) -> list[str]:
    return limited_warnings(
        each
        for index, text in enumerate(items(spec, field))
        if text != canonical_ip(text)  # this is rarely true, because allocated addresses are canonical
        for each in ip_warnings(_SPEC.child(field).at(index), text)
    )


def _ignored_when_headless(spec: Unstructured) -> list[str]:
    fields = [f"spec.{field}" for field in ("loadBalancerIP", "externalIPs") if spec.get(field)]
    if spec.get("sessionAffinity") != NONE:
        fields.append("spec.SessionAffinity")
    return [f"{field} is ignored for headless services" for field in fields]


def _of_another_type(spec: Unstructured) -> list[str]:
    found: list[str] = []
    if spec.get("type") == EXTERNAL_NAME:
        if spec.get("externalIPs"):
            found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    elif spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found

"""Validates the status of Services: the addresses of load balancers.

Guarantees: the errors are the same as in `ValidateServiceStatusUpdate` and `ValidateLoadBalancerStatus` in Kubernetes'
`pkg/apis/core/validation/validation.go`. As in Kubernetes, the conditions of a Service are not validated.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.validation.ip_validation import parse_ip, validate_legacy_ip
from ctrlmgr.engine.validation.name_formats import dns1123_subdomain
from ctrlmgr.kinds.core.service.spec import LOAD_BALANCER

_INGRESS = Path("status.loadBalancer.ingress")
_IP_MODES = frozenset(("Proxy", "VIP"))


def validate_status(service: Unstructured, old: Unstructured) -> list[FieldError]:
    """Validate the new status of a Service; the spec is the spec of the old object."""
    ingress = _ingress(service)
    if ingress and service["spec"].get("type") != LOAD_BALANCER:
        return [forbidden(_INGRESS, "may only be used when `spec.type` is 'LoadBalancer'")]
    existing = [point["ip"] for point in _ingress(old) if point.get("ip")]
    return [error for index, point in enumerate(ingress) for error in _point(point, existing, _INGRESS.at(index))]


def _ingress(service: Unstructured) -> list[Any]:
    return ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _point(point: Unstructured, existing: Collection[str], path: Path) -> list[FieldError]:
    address, mode, host = point.get("ip") or "", point.get("ipMode"), point.get("hostname") or ""
    errors = validate_legacy_ip(path.child("ip"), address, existing) if address else []
    if mode is None:
        if address:
            errors.append(required(path.child("ipMode"), "must be specified when `ip` is set"))
    elif not address:
        errors.append(forbidden(path.child("ipMode"), "may not be specified when `ip` is not set"))
    elif mode not in _IP_MODES:
        errors.append(not_supported(path.child("ipMode"), mode, _IP_MODES))
    if host:
        errors += [invalid(path.child("hostname"), host, problem) for problem in dns1123_subdomain(host)]
        if parse_ip(host) is not None:
            errors.append(invalid(path.child("hostname"), host, "must be a DNS name, not an IP address"))
    return errors

"""Infers `ipFamilies` and `ipFamilyPolicy` of Services from each other and from the addresses.

Guarantees: the IP families of a Service change only if a client changes the policy, the families or the addresses. A
Service that prefers dual stack stays unchanged when the cluster becomes dual-stack or single-stack.

Source: Kubernetes `pkg/registry/core/service/storage/alloc.go`, `initIPFamilyFields` (KEP-563).
"""

from __future__ import annotations

from collections.abc import Sequence

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.validation.ip_validation import is_ipv6
from ctrlmgr.kinds.allocators.service_ranges import IPV4, IPV6
from ctrlmgr.kinds.core.service.address_validation import validate_addresses
from ctrlmgr.kinds.core.service.spec import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    NONE,
    PREFER_DUAL_STACK,
    REQUIRE_DUAL_STACK,
    SINGLE_STACK,
    is_headless_without_selector,
    items,
)

_POLICY = Path("spec.ipFamilyPolicy")
_FAMILIES = Path("spec.ipFamilies")
_ADDRESSES = Path("spec.clusterIPs")


def init_families(spec: Unstructured, old: Unstructured | None, configured: Sequence[str]) -> list[FieldError]:
    """Set the IP families and the policy, or return the errors.

    The first family in `configured` is the default family.
    """
    if spec.get("type") == EXTERNAL_NAME or keeps_dual_stack(spec, old):
        return []
    if old is None and _asks_for_nothing(spec):
        spec["ipFamilyPolicy"], spec["ipFamilies"] = SINGLE_STACK, [configured[0]]
        return []
    _default_policy(spec, old)
    return (
        validate_addresses(spec, old)
        or _apply_policy(spec, old) + _infer_families(spec, configured)
        or _complete(spec, configured)
    )


def _asks_for_nothing(spec: Unstructured) -> bool:
    """Return whether a Service requests no IP families, like most new Services.

    If the function returns True, the other steps of this module are skipped.
    """
    linked = spec.get("clusterIP") or spec.get("clusterIPs") or spec.get("ipFamilies")
    return not linked and spec.get("ipFamilyPolicy") is None


def keeps_dual_stack(spec: Unstructured, old: Unstructured | None) -> bool:
    """Return whether an update leaves the IP families of a Service that prefers dual stack unchanged.

    If the result is True, the addresses of the Service are not validated.
    """
    return (
        old is not None
        and spec.get("ipFamilyPolicy") == PREFER_DUAL_STACK
        and old.get("ipFamilyPolicy") in (None, PREFER_DUAL_STACK)
        and spec.get("type") == old.get("type")
        and spec.get("type") in (CLUSTER_IP, NODE_PORT, LOAD_BALANCER)
        and items(spec, "clusterIPs") == items(old, "clusterIPs")
        and items(spec, "ipFamilies") == items(old, "ipFamilies")
    )


def _default_policy(spec: Unstructured, old: Unstructured | None) -> None:
    if spec.get("ipFamilyPolicy") is not None:
        return
    if old is not None and old.get("ipFamilyPolicy") is not None:
        spec["ipFamilyPolicy"] = old["ipFamilyPolicy"]
    else:
        spec["ipFamilyPolicy"] = REQUIRE_DUAL_STACK if is_headless_without_selector(spec) else SINGLE_STACK


def _apply_policy(spec: Unstructured, old: Unstructured | None) -> list[FieldError]:
    """Remove unchanged values that the new IP family policy forbids; refuse values that contradict the policy."""
    policy = spec["ipFamilyPolicy"]
    errors: list[FieldError] = []
    for field, singular, plural in (
        ("clusterIPs", "cluster IP", "cluster IPs"),
        ("ipFamilies", "IP family", "IP families"),
    ):
        values, was = items(spec, field), items(old or {}, field)
        if policy != SINGLE_STACK:
            if 0 < len(values) < len(was):
                errors.append(invalid(_POLICY, policy, f"must be 'SingleStack' to release the secondary {singular}"))
        elif len(values) == 2 and values == was:
            spec[field] = values[:1]
        elif len(values) == 2:
            detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {plural} are specified"
            errors.append(invalid(_POLICY, policy, detail))
    return errors


def _infer_families(spec: Unstructured, configured: Sequence[str]) -> list[FieldError]:
    """Add the IP families of the addresses; the addresses were already validated."""
    addresses, families = items(spec, "clusterIPs"), list(items(spec, "ipFamilies"))
    errors: list[FieldError] = []
    if addresses[:1] == [NONE]:
        return errors
    for index, address in enumerate(addresses[len(families) :], len(families)):
        family = IPV6 if is_ipv6(address) else IPV4
        if family in configured:
            families.append(family)
        else:
            errors.append(invalid(_ADDRESSES.at(index), addresses, f"{family} is not configured on this cluster"))
    if families:
        spec["ipFamilies"] = families
    return errors


def _complete(spec: Unstructured, configured: Sequence[str]) -> list[FieldError]:
    """Add the IP families that the policy requires.

    A headless Service without a selector may have IP families that are not configured.
    """
    any_family = is_headless_without_selector(spec)
    errors = [] if any_family else _not_configured(spec, configured)
    if errors:
        return errors
    families = list(items(spec, "ipFamilies")) or [configured[0]]
    if len(families) == 1 and spec["ipFamilyPolicy"] != SINGLE_STACK and (any_family or len(configured) == 2):
        families.append(IPV6 if families[0] == IPV4 else IPV4)
    spec["ipFamilies"] = families
    return []


def _not_configured(spec: Unstructured, configured: Sequence[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec["ipFamilyPolicy"] == REQUIRE_DUAL_STACK and len(configured) < 2:
        errors.append(invalid(_POLICY, REQUIRE_DUAL_STACK, "this cluster is not configured for dual-stack services"))
    return errors + [
        invalid(_FAMILIES.at(index), family, "not configured on this cluster")
        for index, family in enumerate(items(spec, "ipFamilies"))
        if family not in configured
    ]

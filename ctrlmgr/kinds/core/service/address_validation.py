"""Validates the addresses and IP families of Services, and their changes.

Guarantees: the errors and their order are the same as in `ValidateServiceClusterIPsRelatedFields`,
`validateUpgradeDowngradeClusterIPs` and `validateUpgradeDowngradeIPFamilies` in Kubernetes'
`pkg/apis/core/validation/validation.go`. In error messages, lists are formatted as in Go. An absent list is shown as
null.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured, repeated
from ctrlmgr.engine.validation.ip_validation import is_ipv6, validate_legacy_ip
from ctrlmgr.kinds.allocators.service_ranges import IPV4, IPV6
from ctrlmgr.kinds.core.service.spec import (
    EXTERNAL_NAME,
    NONE,
    PREFER_DUAL_STACK,
    REQUIRE_DUAL_STACK,
    SINGLE_STACK,
    is_headless,
    items,
)

_ADDRESSES = Path("spec.clusterIPs")
_FAMILIES = Path("spec.ipFamilies")
_POLICY = Path("spec.ipFamilyPolicy")
_SUPPORTED_FAMILIES = frozenset((IPV4, IPV6))
_SUPPORTED_POLICIES = frozenset((SINGLE_STACK, PREFER_DUAL_STACK, REQUIRE_DUAL_STACK))
_UNCHANGING = "may not change once set"


def validate_addresses(spec: Unstructured, old: Unstructured | None) -> list[FieldError]:
    """Validate each of clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy, and then their combination."""
    if spec.get("type") == EXTERNAL_NAME:
        return []
    addresses = items(spec, "clusterIPs")
    errors = _linked(spec.get("clusterIP") or "", addresses) + _families(spec)
    if not addresses:
        return errors
    malformed = _malformed(addresses, items(old, "clusterIPs") if old else ())
    errors += malformed
    if len(addresses) > 2:
        errors.append(invalid(_ADDRESSES, addresses, "may only hold up to 2 values"))
    if malformed:
        return errors
    if len(addresses) > 1 and len({is_ipv6(address) for address in addresses}) < 2:
        errors.append(invalid(_ADDRESSES, addresses, "may specify no more than one IP for each IP family"))
    return errors if is_headless(spec) else errors + _of_other_family(addresses, items(spec, "ipFamilies"))


def _linked(address: str, addresses: Sequence[str]) -> list[FieldError]:
    if not address:
        detail = "must be empty when `clusterIP` is not specified"
        return [invalid(_ADDRESSES, addresses, detail)] if addresses else []
    if not addresses:
        return [required(_ADDRESSES)]
    return [] if addresses[0] == address else [invalid(_ADDRESSES, addresses, "first value must match `clusterIP`")]


def _families(spec: Unstructured) -> list[FieldError]:
    errors: list[FieldError] = []
    policy, families = spec.get("ipFamilyPolicy"), items(spec, "ipFamilies")
    again = repeated(families)
    for index, family in enumerate(families):
        if family not in _SUPPORTED_FAMILIES:
            errors.append(not_supported(_FAMILIES.at(index), family, _SUPPORTED_FAMILIES))
        if index in again:
            errors.append(duplicate(_FAMILIES.at(index), family))
    if policy is not None and policy not in _SUPPORTED_POLICIES:
        errors.append(not_supported(_POLICY, policy, _SUPPORTED_POLICIES))
    return errors


def _malformed(addresses: Sequence[str], existing: Sequence[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, address in enumerate(addresses):
        if index or address != NONE:
            errors += validate_legacy_ip(_ADDRESSES.at(index), address, existing)
        elif len(addresses) > 1:
            errors.append(invalid(_ADDRESSES, addresses, "'None' must be the first and only value"))
    return errors


def _of_other_family(addresses: Sequence[str], families: Sequence[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, (address, family) in enumerate(zip(addresses, families, strict=False)):
        if family in _SUPPORTED_FAMILIES and is_ipv6(address) != (family == IPV6):
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(_ADDRESSES.at(index), address, detail))
    return errors


def validate_address_change(new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Validate that addresses are only added, or that secondary addresses are only removed.

    Service types without an address are skipped.
    """
    if EXTERNAL_NAME in (new.get("type"), old.get("type")) or (is_headless(old) and is_headless(new)):
        return []
    before, after = items(old, "clusterIPs"), items(new, "clusterIPs")
    if len(before) == len(after):
        return [
            invalid(_ADDRESSES.at(index), after, _UNCHANGING)
            for index, (was, is_now) in enumerate(zip(before, after, strict=True))
            if was != is_now
        ]
    errors: list[FieldError] = []
    if not after:
        errors.append(invalid(_ADDRESSES.at(0), None, "primary clusterIP can not be unset"))
    elif before and before[0] != after[0]:
        errors.append(invalid(_ADDRESSES.at(0), after, _UNCHANGING))
    if len(after) == 1 < len(before):
        errors += _must_be_single_stack(new, "clusterIP")
    return errors


def validate_family_change(new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Validate the changes of a Service's IP families.

    A headless Service may change its IP families. A Service that becomes headless may also change its IP families.
    """
    if EXTERNAL_NAME in (new.get("type"), old.get("type")) or is_headless(old) or is_headless(new):
        return []
    before, after = items(old, "ipFamilies"), items(new, "ipFamilies")
    if len(before) == len(after):
        return [
            invalid(_FAMILIES.at(0), after, _UNCHANGING)
            for was, is_now in zip(before, after, strict=True)
            if was != is_now
        ]
    errors: list[FieldError] = []
    addresses = items(new, "clusterIPs") or None
    if len(after) < len(before) and addresses is None:
        errors.append(invalid(_FAMILIES.at(0), after or None, "primary ipFamily can not be unset"))
    if before and after and before[0] != after[0]:
        errors.append(invalid(_FAMILIES.at(0), addresses, _UNCHANGING))
    if len(after) == 1 < len(before):
        errors += _must_be_single_stack(new, "ipFamily")
    return errors


def _must_be_single_stack(new: Unstructured, what: str) -> list[FieldError]:
    policy = new.get("ipFamilyPolicy")
    detail = f"must be set to 'SingleStack' when releasing the secondary {what}"
    return [] if policy == SINGLE_STACK else [invalid(_POLICY, policy, detail)]

"""Applies DeviceTaintRules to devices, as `dynamic-resource-allocation/resourceslice/tracker` does for the scheduler.

A rule taints the devices that its selector matches. As in Kubernetes 1.36, the scheduler applies a rule without a
selector to all devices, but the device taint eviction controller applies such a rule to no device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.scheduling.structured.pools import DeviceID, Fields, Slice

DEVICE_TAINT_RULES: Final = Resource("resource.k8s.io", "devicetaintrules")
GATE: Final = "DRADeviceTaintRules"
"""The feature gate that must be enabled for rules to have an effect."""


class DeviceTaintSelector(msgspec.Struct, frozen=True, gc=False):
    """The devices of a rule; a field that is None matches every value."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def matches(self, device: DeviceID) -> bool:
        """Return whether the selector matches a device."""
        wanted = (self.driver, self.pool, self.device)
        return all(each in (None, found) for each, found in zip(wanted, device, strict=True))


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    device_selector: DeviceTaintSelector | None = None
    taint: dict[str, Any] = {}


class _Rule(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


class DeviceTaintRule(NamedTuple):
    """A rule, with its selector and its taint."""

    object: Object
    selector: DeviceTaintSelector | None
    taint: Mapping[str, Any]

    @classmethod
    def of(cls, rule: Object) -> DeviceTaintRule:
        """Decode a DeviceTaintRule."""
        spec = rule.view(_Rule).spec
        return cls(rule, spec.device_selector, spec.taint)

    @property
    def effect(self) -> str:
        """The effect of the rule's taint."""
        return str(self.taint.get("effect") or "")


def in_order(rules: Iterable[Object]) -> list[DeviceTaintRule]:
    """Return the rules sorted by name."""
    return [DeviceTaintRule.of(each) for each in sorted(rules, key=lambda each: each.name)]


def with_rules(slice_: Slice, rules: Sequence[DeviceTaintRule]) -> Slice:
    """Return a ResourceSlice whose devices also have the taints of the rules that match them."""
    if not rules or not slice_.devices:
        return slice_
    devices = [_tainted(each, DeviceID(*slice_.pool, each["name"]), rules) for each in slice_.devices]
    return slice_._replace(spec={**slice_.spec, "devices": devices})


def _tainted(device: Fields, name: DeviceID, rules: Sequence[DeviceTaintRule]) -> Fields:
    taints = [each.taint for each in rules if each.selector is None or each.selector.matches(name)]
    return {**device, "taints": [*(device.get("taints") or ()), *taints]} if taints else device

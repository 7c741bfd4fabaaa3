"""Evaluates the constraints of claims.

A constraint requires either that all devices of a claim have the same value of an attribute, or that all have different
values.

Source: `matchAttributeConstraint` and `distinctAttributeConstraint` in `dynamic-resource-allocation/structured`. For
distinct values, Kubernetes compares a device only with the last device of each request. In ctrlmgr, a device is
compared with every other device of the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.scheduling.structured.pools import Device

Value = tuple[str, Any]
"""The type of a device attribute, and the attribute's value."""


def attribute_of(device: Device, name: str) -> Value | None:
    """Return the attribute with this fully qualified name; None if the device does not have the attribute."""
    attributes: Mapping[str, Mapping[str, Any]] = device.fields.get("attributes") or {}
    domain, _, identifier = name.partition("/")
    found = attributes.get(name)
    if found is None and domain == device.id.driver:
        found = attributes.get(identifier)
    return None if found is None else next(iter(found.items()), None)


class Constraint:
    """One constraint, with the attribute values of the devices that were chosen so far."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Read a DeviceConstraint."""
        self._requests = frozenset(fields.get("requests") or ())
        self._must_differ = fields.get("distinctAttribute") is not None
        self._name: str = fields["distinctAttribute"] if self._must_differ else fields["matchAttribute"]
        self._values: list[Value] = []

    def add(self, request: str, device: Device) -> bool:
        """Add a device for a request (`REQUEST` or `REQUEST/ALTERNATIVE`); return whether the constraint allows it."""
        if not self._concerns(request):
            return True
        value = attribute_of(device, self._name)
        if value is None or (value in self._values if self._must_differ else self._differs(value)):
            return False
        self._values.append(value)
        return True

    def remove(self, request: str) -> None:
        """Remove the device that was added last for a request."""
        if self._concerns(request):
            self._values.pop()

    def _concerns(self, request: str) -> bool:
        return not self._requests or request in self._requests or request.partition("/")[0] in self._requests

    def _differs(self, value: Value) -> bool:
        return bool(self._values) and self._values[0] != value

"""Reads the pools of devices that a node can reach from ResourceSlices.

The guarantees are those of `GatherPools` in `dynamic-resource-allocation/structured`:
- Only the slices of a pool's newest generation are used. A pool is incomplete if not all of its slices are known; the
  devices of an incomplete pool are not allocated.
- A pool is invalid if two devices have the same name, or if it refers to counters that do not exist; the devices of an
  invalid pool are not allocated.
- Pools are sorted by driver and name; pools with binding conditions come last. The slices of a pool are sorted by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.quantity import parse
from ctrlmgr.scheduling.node_selection import NodeSelector

Fields = Mapping[str, Any]
"""Decoded JSON."""
Counters = Mapping[str, Mapping[str, int]]
"""Amounts in billionths, by counter set and by counter."""


class DeviceID(NamedTuple):
    """The identity of a device."""

    driver: str
    pool: str
    device: str


class Slice(NamedTuple):
    """A ResourceSlice, with its name and its spec."""

    name: str
    spec: Fields

    @property
    def pool(self) -> tuple[str, str]:
        """The driver and the name of the slice's pool."""
        return self.spec["driver"], self.spec["pool"]["name"]

    @property
    def generation(self) -> int:
        """The generation of the slice's pool."""
        return int(self.spec["pool"].get("generation") or 0)

    @property
    def devices(self) -> Sequence[Fields]:
        """The devices in the slice."""
        return self.spec.get("devices") or ()


class Device(NamedTuple):
    """A device of a pool."""

    id: DeviceID
    fields: Fields
    spec: Fields
    """The spec of the slice that contains the device."""

    @property
    def is_shared(self) -> bool:
        """Whether several claims may share the device."""
        return bool(self.fields.get("allowMultipleAllocations"))

    @property
    def consumed(self) -> Counters:
        """The counters that the device consumes, with the amounts."""
        return consumed_counters(self.fields)


@dataclass(frozen=True)
class Pool:
    """A pool of devices that a node can reach."""

    driver: str
    name: str
    devices: Sequence[Device] = ()
    all_devices: Sequence[Device] = ()
    """All devices of the pool; devices that the node cannot reach are included, because they may share counters with
    devices that the node can reach.
    """
    counters: Counters = field(default_factory=dict)
    is_incomplete: bool = False
    is_invalid: bool = False

    @property
    def has_binding_conditions(self) -> bool:
        """Whether a device of the pool must be prepared after its allocation (binding conditions)."""
        return any(each.fields.get("bindingConditions") for each in self.devices)


class NodePlace(NamedTuple):
    """The name and labels of a node."""

    name: str
    labels: Mapping[str, str]

    def reaches(self, fields: Fields) -> bool:
        """Return whether a slice or a device is available on this node (`NodeMatches`)."""
        if fields.get("nodeName"):
            return bool(fields["nodeName"] == self.name)
        if fields.get("allNodes"):
            return True
        selector = fields.get("nodeSelector")
        return selector is not None and msgspec.convert(selector, NodeSelector).matches(self.name, self.labels)


def consumed_counters(device: Fields) -> Counters:
    """Return the counters that a device consumes."""
    return {
        each["counterSet"]: {name: parse(counter["value"]) for name, counter in (each.get("counters") or {}).items()}
        for each in device.get("consumesCounters") or ()
    }


def gather(node: NodePlace, slices: Iterable[Slice]) -> list[Pool]:
    """Return the pools that a node can reach."""
    by_pool: dict[tuple[str, str], list[Slice]] = {}
    for each in slices:
        by_pool.setdefault(each.pool, []).append(each)
    pools = [pool for key, parts in by_pool.items() if (pool := _pool(node, key, parts)) is not None]
    return sorted(pools, key=lambda pool: (pool.has_binding_conditions, pool.driver, pool.name))


def _pool(node: NodePlace, key: tuple[str, str], slices: Sequence[Slice]) -> Pool | None:
    newest = max(each.generation for each in slices)
    current = sorted((each for each in slices if each.generation == newest), key=lambda each: each.name)
    relevant = [each for each in current if _is_relevant(node, each)]
    if not relevant:
        return None
    if len(current) != relevant[0].spec["pool"]["resourceSliceCount"]:
        return Pool(*key, is_incomplete=True)
    counters = [*_counter_sets(current)]
    found = [*_devices(relevant)]
    everything = [*_devices(current)]
    names = [each.id.device for each in found]
    known = dict(counters)
    if len(names) != len(set(names)) or len(known) != len(counters) or not _are_known(everything, known):
        return Pool(*key, is_invalid=True)
    reached = [each for each in found if _is_reached(node, each)]
    return Pool(*key, devices=reached, all_devices=everything, counters=known)


def _is_relevant(node: NodePlace, slice_: Slice) -> bool:
    """Return whether a slice has devices for a node, or defines counters, which are needed for every node."""
    spec = slice_.spec
    if spec.get("sharedCounters"):
        return True
    if spec.get("perDeviceNodeSelection"):
        return any(node.reaches(each) for each in slice_.devices)
    return node.reaches(spec)


def _is_reached(node: NodePlace, device: Device) -> bool:
    return not device.spec.get("perDeviceNodeSelection") or node.reaches(device.fields)


def _devices(slices: Iterable[Slice]) -> Iterator[Device]:
    for each in slices:
        driver, pool = each.pool
        yield from (Device(DeviceID(driver, pool, device["name"]), device, each.spec) for device in each.devices)


def _counter_sets(slices: Iterable[Slice]) -> Iterator[tuple[str, Mapping[str, int]]]:
    for each in slices:
        for counters in each.spec.get("sharedCounters") or ():
            values = {name: parse(counter["value"]) for name, counter in (counters.get("counters") or {}).items()}
            yield counters["name"], values


def _are_known(devices: Iterable[Device], counters: Counters) -> bool:
    return all(
        name in counters and consumed.keys() <= counters[name].keys()
        for device in devices
        if device.fields.get("consumesCounters")
        for name, consumed in device.consumed.items()
    )

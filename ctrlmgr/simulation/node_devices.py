"""The devices of simulated nodes: the file of nodes describes them, and ResourceSlices publish them.

    devices:
      gpu.example.com:
      - {name: gpu, count: 4, attributes: {model: h100, numa: 0}, capacity: {memory: 80Gi}}

In the file, each driver has a list of devices. A device with a `count` describes several devices with the names
`NAME-0`, `NAME-1` and so on. The other fields are the same as in a device of a ResourceSlice, but attributes and
capacities have plain values. For each driver, a node has one pool with one slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.field import Path
from ctrlmgr.kinds.core.volume_sources import driver_name
from ctrlmgr.kinds.resource.devices import validate_device

Devices = Mapping[str, Sequence[Mapping[str, Any]]]
"""The type of the devices of a node, grouped by driver."""

_MOST: Final = 128
"""The maximum number of devices in a ResourceSlice (`ResourceSliceMaxDevices`)."""


def read_devices(given: Any) -> Devices:
    """Return the devices that the file of nodes describes for a node; raises `ValueError` with the first error."""
    if not isinstance(given, dict):
        raise ValueError("`devices` is a table of drivers, each with a list of devices")
    found = {str(driver): [*_devices_of(str(driver), each)] for driver, each in given.items()}
    for driver, devices in found.items():
        _check(driver, devices)
    return found


def _devices_of(driver: str, given: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(given, list) or not all(isinstance(each, dict) and each.get("name") for each in given):
        raise ValueError(f"{driver}: a list of devices is expected, each with a `name`")
    for each in given:
        count = each.get("count", 1)
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ValueError(f"{driver}: {each['name']}: `count` is a whole number of at least 1")
        names = [str(each["name"])] if "count" not in each else [f"{each['name']}-{at}" for at in range(count)]
        yield from ({**_device(driver, each), "name": name} for name in names)


def _device(driver: str, given: Mapping[str, Any]) -> dict[str, Any]:
    fields = {key: value for key, value in given.items() if key not in ("count", "attributes", "capacity")}
    tables = {key: given.get(key) or {} for key in ("attributes", "capacity")}
    for key, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"{driver}: {given['name']}: `{key}` is a table of names and values")
    if tables["attributes"]:
        fields["attributes"] = {str(name): _attribute(value) for name, value in tables["attributes"].items()}
    if tables["capacity"]:
        fields["capacity"] = {
            str(name): value if isinstance(value, dict) else {"value": str(value)}
            for name, value in tables["capacity"].items()
        }
    return fields


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
    return {kind: str(value) if kind == "string" else value}


def _check(driver: str, devices: Sequence[Mapping[str, Any]]) -> None:
    errors = driver_name(driver, Path(driver))
    errors += [
        error
        for at, each in enumerate(devices)
        for error in validate_device(each, None, Path(driver).at(at), is_each_placed=False)
    ]
    names = [each["name"] for each in devices]
    if errors:
        raise ValueError(f"{errors[0].field}: {errors[0].message}")
    if len(names) != len(set(names)):
        raise ValueError(f"{driver}: two devices have the same name")
    if len(names) > _MOST:
        raise ValueError(f"{driver}: a node has at most {_MOST} devices of a driver")


def slices(node: str, uid: str, devices: Devices) -> Iterator[dict[str, Any]]:
    """Yield the ResourceSlice of each driver of a node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    for driver, each in devices.items():
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{driver}", "ownerReferences": [owner]},
            "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": [dict(device) for device in each]},
        }

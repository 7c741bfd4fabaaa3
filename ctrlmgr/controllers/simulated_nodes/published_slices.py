"""Keeps the ResourceSlices of simulated nodes; if another client changes or deletes a slice, restores the slice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.errors import AlreadyExists
from ctrlmgr.informer import Change, Lister
from ctrlmgr.simulation.node_devices import Devices, slices

RESOURCE_SLICES: Final = Resource("resource.k8s.io", "resourceslices")


class ResourceSlices:
    """Publishes the devices of simulated nodes as ResourceSlices."""

    def __init__(self, slices: Lister, devices: Mapping[str, Devices]) -> None:
        """Create an instance that reads existing slices from this cache.

        The argument `devices` contains the devices of each node, keyed by the node's name.
        """
        self._slices, self._devices = slices, devices

    def publish(self, node: Object, client: EngineClient) -> None:
        """Create or restore the slices of a node; raises the errors of the API if a write fails."""
        for each in slices(node.name, node.uid, self._devices.get(node.name, {})):
            desired = Object.from_dict(each)
            found = self._slices.get(desired.key)
            if found is None:
                # The cache does not contain the newest state yet. The change that the cache lacks will trigger the next
                # reconcile.
                with suppress(AlreadyExists):
                    client.create(desired)
            elif found.metadata.owner_references != desired.metadata.owner_references:
                client.delete(found)  # The slice belongs to an earlier node with this name.
            elif _without_times(found.to_dict()["spec"]) != each["spec"]:
                client.update(found.with_field("spec", each["spec"]))


def _without_times(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a slice without the timestamps of taints, which the API sets."""
    devices = [{**each, **_taints(each)} for each in spec.get("devices") or ()]
    return {**spec, "devices": devices}


def _taints(device: Mapping[str, Any]) -> dict[str, Any]:
    taints = [{key: each[key] for key in each if key != "timeAdded"} for each in device.get("taints") or ()]
    return {"taints": taints} if taints else {}


def slice_keys(change: Change) -> Iterator[Key]:
    """Yield the key of the node of a ResourceSlice that was changed or deleted."""
    name = change.object.to_dict()["spec"].get("nodeName") if change.old is not None else ""
    if name:
        yield Key("", name)

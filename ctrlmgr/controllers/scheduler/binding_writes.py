"""Reserves the volumes and devices of a pod for its node, and writes the reservations before the pod is bound.

The guarantees are those of kube-scheduler's scheduling and binding cycles. A reservation counts in later decisions as
soon as it is made (`Reserve`). The writes of a reservation run without the scheduler's lock (`PreBind`), so they run
concurrently with decisions and with the writes of other pods. If a write fails, the whole reservation is withdrawn
(`Unreserve`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from random import Random
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import SELECTED_NODE
from ctrlmgr.controllers.scheduler.decision_inputs import CLAIMS, DecisionInputs
from ctrlmgr.controllers.scheduler.scheduled_claims import Reservation, write_reservation
from ctrlmgr.controllers.scheduler.scheduling_queue import Entry
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.scheduling.structured.pools import NodePlace
from ctrlmgr.scheduling.volume_binding import allotted


class Binding(NamedTuple):
    """A pod to bind, and its node. The model of the cluster already counts the pod on this node."""

    entry: Entry
    pod: Object
    node: str
    volumes: tuple[Object, ...] = ()
    """The volumes and the volume claims to write."""
    claims: tuple[Key, ...] = ()
    """The volume claims that must be bound before the pod."""
    provisioned: frozenset[Key] | None = None
    """The claims whose volumes are provisioned for the node; None if all claims are bound."""
    devices: tuple[Reservation, ...] = ()
    """The resource claims to write."""
    has_reservations: bool = False
    """Whether the pod reserved volumes or devices."""

    @property
    def has_writes(self) -> bool:
        """Whether objects must be written before the pod is bound."""
        return bool(self.volumes or self.devices)

    def written(self) -> Binding:
        """Return the binding in the state after its writes, in which all volumes are bound."""
        return self._replace(volumes=(), provisioned=None, devices=())


class BindingWrites:
    """Reserves volumes and devices for pods, and writes the reservations."""

    def __init__(self, surroundings: DecisionInputs, clock: Clock, random: Random) -> None:
        """Create an instance that reads and assumes objects of `surroundings`; `random` creates ids of devices."""
        self._surroundings = surroundings
        self._clock = clock
        self._random = random

    def reserve(self, entry: Entry, pod: Object, node: str, labels: Mapping[str, str]) -> Binding:
        """Reserve the volumes and the devices of a pod on a node, without writing objects; raises `Conflict`."""
        binding = Binding(entry, pod, node)
        if entry.pod.claims:
            binding = self._with_volumes(binding, labels)
        if entry.pod.view.spec.resource_claims:
            devices = self._surroundings.devices
            place, found = NodePlace(node, labels), devices.of(entry.pod)
            reserved = devices.reserve(entry.pod, place, found, lambda: new_uid(self._random))
            binding = binding._replace(devices=reserved, has_reservations=True)
        return binding

    def _with_volumes(self, binding: Binding, labels: Mapping[str, str]) -> Binding:
        delayed = self._surroundings.volumes(binding.entry.pod).delayed
        if not delayed:
            return binding
        desired = allotted(delayed, binding.node, labels) or {}
        return binding._replace(
            volumes=tuple(self._surroundings.assume(desired, binding.node)),
            claims=tuple(desired),
            provisioned=frozenset(key for key, volume in desired.items() if not volume),
            has_reservations=True,
        )

    def write(self, binding: Binding, client: EngineClient, deciding: AbstractContextManager[object]) -> None:
        """Write the reservations of a pod.

        Hold the scheduler's lock `deciding` only while the written objects are recorded.

        Raises the errors of `client` if a write fails.
        """
        volumes: list[Object] = []
        claims: list[Object] = []
        pod, now = binding.entry.pod, format_time_seconds(self._clock.now())
        try:
            volumes.extend(_written(each, binding.node, client) for each in binding.volumes)
            claims.extend(write_reservation(each, pod, client, now) for each in binding.devices)
        finally:
            with deciding:
                for each in volumes:
                    self._surroundings.assumed.put(each)
                self._surroundings.devices.settle(binding.devices, claims)

    def forget(self, binding: Binding) -> None:
        """Forget the assumed states of the volumes of a pod that was bound."""
        self._surroundings.assumed.restore(binding.volumes)

    def withdraw(self, binding: Binding) -> None:
        """Withdraw reservations that were not written."""
        self._surroundings.assumed.restore(binding.volumes)
        self._surroundings.devices.settle(binding.devices, ())

    def release(self, binding: Binding, client: EngineClient) -> None:
        """Withdraw the reservations of a pod that is not bound, also if some of them were written."""
        self.withdraw(binding)
        if binding.has_reservations and binding.entry.pod.view.spec.resource_claims:
            self._surroundings.devices.unreserve(binding.entry.pod, client)


def _written(obj: Object, node: str, client: EngineClient) -> Object:
    if obj.resource != CLAIMS:
        return client.update(obj)
    return client.patch(obj, {"metadata": {"uid": obj.uid, "annotations": {SELECTED_NODE: node}}})

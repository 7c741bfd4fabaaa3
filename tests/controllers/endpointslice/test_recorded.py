"""Tests that our slices equal those of Kubernetes 1.36.2 for recorded Services, pods and Endpoints.

The environment variable CTRLMGR_RECORDINGS names the folder with the recordings; the default is the folder beside the
repository. If the folder with the recordings does not exist, the tests use the small recording in `tests/recordings`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from ctrlmgr.api.core import Pod, Service
from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME, SKIP_MIRROR, Endpoint, EndpointSlice
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, PODS, SERVICES, Key, Resource
from ctrlmgr.controllers.endpointslice.slice_changes import desired_changes
from ctrlmgr.controllers.endpointslice.slice_objects import MANAGER, Appearance, appearance_of, new_slice
from ctrlmgr.controllers.endpointslice.slice_packing import Changes
from ctrlmgr.controllers.endpointslice_mirroring import controller as mirroring
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.informer import Store
from ctrlmgr.recording.format import Checkpoint, RecordingReader
from tests.controllers.endpoints.test_recorded_endpoints import recordings

ZONES = {"node-a": "zone-1", "node-b": "zone-1", "node-c": "zone-2", "node-d": "zone-3"}
"""The nodes of every recording; the recorded watches do not contain nodes."""

FOLLOWED = (NAMESPACES, SERVICES, PODS, ENDPOINTS, ENDPOINT_SLICES)

Content: TypeAlias = dict[Any, dict[Any, Endpoint]]
"""The endpoints of slices, by family and ports, and then by address and target."""


class CachesAtCheckpoint(NamedTuple):
    """The caches of the controller at a checkpoint of the recording."""

    checkpoint: str
    stores: dict[Resource, Store]

    def slices(self, owner: Key, manager: str) -> list[Object]:
        """Return the recorded slices of an object if no client changed the slices."""
        labels = {SERVICE_NAME: owner.name, MANAGED_BY: manager}
        return self.stores[ENDPOINT_SLICES].list(owner.namespace, labels)


def checkpoints(path: Path) -> Iterator[CachesAtCheckpoint]:
    stores = {resource: Store() for resource in FOLLOWED}
    stores[PODS].add_label_index()
    stores[ENDPOINT_SLICES].add_label_index()
    for entry in RecordingReader(path):
        if isinstance(entry, Checkpoint):
            yield CachesAtCheckpoint(entry.name, stores)
        elif (store := stores.get(entry.object.resource)) is not None:
            store.apply(entry.object.key, None if entry.type is EventType.DELETED else entry.object)


def content(slices: list[Object]) -> Content:
    found: Content = {}
    for obj in slices:
        view = obj.view(EndpointSlice)
        endpoints = found.setdefault((view.address_type, frozenset(view.ports or ())), {})
        for each in view.endpoints or ():
            endpoints[each.addresses[0], each.target_ref and each.target_ref.uid] = each
    return found


def made(changes: Changes, appearance: Appearance) -> list[Object]:
    """Return the slices that the controller writes if no slices existed before."""
    assert not changes.update
    assert not changes.delete
    return [new_slice(draft, appearance, f"slice-{number}") for number, draft in enumerate(changes.create)]


def writes(changes: Changes) -> bool:
    return bool(changes.create or changes.update or changes.delete)


@pytest.mark.parametrize(("path", "least"), list(recordings()))
def test_every_recorded_slice_equals_the_desired_one(path: Path, least: int) -> None:
    compared = 0
    for at in checkpoints(path):
        for service in at.stores[SERVICES].list():
            view = service.view(Service)
            if not view.selects_endpoints:
                continue
            where = f"{at.checkpoint}: {service.key}"
            pods = [pod.view(Pod) for pod in at.stores[PODS].list(service.namespace, view.spec.selector)]
            if any(pod.spec.node_name not in ZONES for pod in pods):
                continue
            recorded = at.slices(service.key, MANAGER)
            assert recorded, f"{where} has no recorded slices"
            ours = made(
                desired_changes(service, pods, [], zone_of=ZONES.get, shares=lambda: None, capacity=100),
                appearance_of(service, None),
            )
            assert content(ours) == content(recorded), where
            assert {tuple(obj.labels.items()) for obj in ours} == {tuple(obj.labels.items()) for obj in recorded}, where
            again = desired_changes(service, pods, recorded, zone_of=ZONES.get, shares=lambda: None, capacity=100)
            assert not writes(again), f"{where} would be written again"
            compared += 1
    assert compared >= least


@pytest.mark.parametrize(("path", "least"), list(recordings()))
def test_every_recorded_mirror_equals_the_desired_one(path: Path, least: int) -> None:
    compared = 0
    for at in checkpoints(path):
        for endpoints in at.stores[ENDPOINTS].list():
            service = at.stores[SERVICES].get(endpoints.key)
            recorded = at.slices(endpoints.key, mirroring.MANAGER)
            where = f"{at.checkpoint}: {endpoints.key}"
            if service is None or service.view(Service).spec.selector is not None or SKIP_MIRROR in endpoints.labels:
                assert not recorded, where
                continue
            ours = made(mirroring.desired_mirrors(endpoints, [], 1000), mirroring.appearance_of(endpoints))
            assert content(ours) == content(recorded), where
            assert not writes(mirroring.desired_mirrors(endpoints, recorded, 1000)), f"{where} would be written again"
            compared += len(recorded)
    assert compared or least < 100, "the small recording has none"

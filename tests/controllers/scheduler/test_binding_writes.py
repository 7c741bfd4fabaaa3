"""Tests of the writes between the decision about a pod and its binding: reservations of volumes and devices."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import SELECTED_NODE
from ctrlmgr.controllers.scheduler.assumed_objects import AssumedObjects
from ctrlmgr.controllers.scheduler.decision_inputs import VOLUMES
from ctrlmgr.controllers.scheduler.scheduled_claims import RESOURCE_CLAIMS
from ctrlmgr.errors import ServiceUnavailable
from tests.controllers.scheduler.test_scheduler import SchedulerCluster
from tests.controllers.scheduler.test_scheduler_allocations import Devices
from tests.controllers.scheduler.test_scheduler_volume_limits import CLAIMS, STORAGE


@pytest.fixture
def cluster() -> Devices:
    return Devices()


def consumers(cluster: Devices, claim: str) -> list[str]:
    return [each["name"] for each in (cluster.fields(claim).get("status") or {}).get("reservedFor") or ()]


def test_a_decision_during_the_write_of_a_claim_counts_its_devices(
    cluster: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("p", "q"):
        cluster.claim(name, count=2)
        cluster.user(name, name)
    cluster.stage.hear()
    during: list[bool] = []
    write = EngineClient.update

    def update(client: EngineClient, obj: Object, subresource: str = "") -> Object:
        if not during and obj.resource == RESOURCE_CLAIMS:
            during.append(True)
            while cluster.stage.controller.process_next(timeout=0):
                pass
        return write(client, obj, subresource)

    monkeypatch.setattr(EngineClient, "update", update)
    assert {*cluster.places().values()} == {"n1", "n2"}
    assert during
    assert len({*cluster.devices("p"), *cluster.devices("q")}) == 4


def test_a_claim_whose_allocation_is_being_written_is_not_allocated_again(
    cluster: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.claim("mine")
    for name in ("p", "q"):
        cluster.user(name, "mine")
    cluster.stage.hear()
    during: list[bool] = []
    write = EngineClient.update

    def update(client: EngineClient, obj: Object, subresource: str = "") -> Object:
        if not during and obj.resource == RESOURCE_CLAIMS:
            during.append(True)
            while cluster.stage.controller.process_next(timeout=0):
                pass
            assert "claim a/mine is in the process of being allocated" in cluster.recorded("FailedScheduling")[0]
        return write(client, obj, subresource)

    monkeypatch.setattr(EngineClient, "update", update)
    cluster.stage.work()
    cluster.stage.pass_by(1)
    assert len({*cluster.places().values()}) == 1
    assert {*consumers(cluster, "mine")} == {"p", "q"}


def fail_once(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    original = getattr(EngineClient, method)

    def fail(*_: Any, **__: Any) -> None:
        monkeypatch.setattr(EngineClient, method, original)
        raise ServiceUnavailable("no")

    monkeypatch.setattr(EngineClient, method, fail)


def test_a_failed_binding_removes_the_reservation(cluster: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.claim("mine")
    cluster.user("p", "mine")
    fail_once(monkeypatch, "bind")
    assert cluster.places() == {"p": ""}
    assert cluster.devices("mine")
    assert consumers(cluster, "mine") == []
    cluster.stage.pass_by(1)
    assert cluster.places()["p"]
    assert consumers(cluster, "mine") == ["p"]


def test_a_failed_write_of_a_claim_releases_its_devices(cluster: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.claim("mine", count=2)
    cluster.user("p", "mine", nodeSelector={"kubernetes.io/hostname": "n1"})
    fail_once(monkeypatch, "update")
    assert cluster.places() == {"p": ""}
    cluster.stage.delete("/api/v1/namespaces/a/pods/p")
    cluster.claim("other", count=2)
    cluster.user("q", "other", nodeSelector={"kubernetes.io/hostname": "n1"})
    assert cluster.places() == {"q": "n1"}


@pytest.fixture
def volumes() -> SchedulerCluster:
    """Return two nodes, and two pods whose claims may be bound to the only volume, `v`."""
    cluster = SchedulerCluster()
    for name in ("n1", "n2"):
        cluster.node(name)
    delayed = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    cluster.stage.create(f"{STORAGE}/storageclasses", {"metadata": {"name": "local"}, **delayed})
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    volume = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/v"}, **common}
    cluster.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": volume})
    cluster.stage.patch("/api/v1/persistentvolumes/v/status", {"status": {"phase": "Available"}})
    for name in ("p", "q"):
        spec = {"resources": {"requests": {"storage": "1Gi"}}, **common}
        cluster.stage.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})
        cluster.pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
    cluster.stage.hear()
    return cluster


def reference(cluster: SchedulerCluster) -> str:
    volume = cluster.stage.stored(VOLUMES, "v")
    assert volume is not None
    name: str = volume.to_dict()["spec"].get("claimRef", {}).get("name", "")
    return name


def test_a_volume_that_is_being_reserved_is_not_reserved_again(
    volumes: SchedulerCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = EngineClient.update
    updates: list[Object] = []

    def update(client: EngineClient, obj: Object, subresource: str = "") -> Object:
        updates.append(obj)
        while len(updates) == 1 and volumes.stage.controller.process_next(timeout=0):
            pass
        return write(client, obj, subresource)

    monkeypatch.setattr(EngineClient, "update", update)
    volumes.stage.work()
    assert [each.name for each in updates] == ["v"]
    assert reference(volumes) in ("p", "q")
    assert "2 node(s) didn't find available persistent volumes to bind" in volumes.recorded("FailedScheduling")[0]


def test_a_volume_whose_reservation_failed_is_free_again(
    volumes: SchedulerCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_once(monkeypatch, "update")
    volumes.stage.work()
    assert reference(volumes) in ("p", "q")


def test_an_assumed_object_hides_older_revisions_only() -> None:
    fields = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    cached = Object.from_dict({**fields, "metadata": {"name": "c", "namespace": "a", "uid": "u"}}).at(5)
    desired = cached.with_metadata(annotations={SELECTED_NODE: "n"})
    assumed = AssumedObjects()
    assumed.put(desired)
    assert assumed.newest(cached) is desired
    assumed.restore([desired])
    assert assumed.newest(cached) is cached
    assumed.put(desired)
    newer = cached.at(6)
    assert assumed.newest(newer) is newer
    assert assumed.newest(cached) is cached, "the newer state replaced the assumed state"
    assert assumed.newest(None) is None

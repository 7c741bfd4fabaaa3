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
from tests.controllers.scheduler.test_scheduler import Scene
from tests.controllers.scheduler.test_scheduler_allocations import Devices
from tests.controllers.scheduler.test_scheduler_volume_limits import CLAIMS, STORAGE


@pytest.fixture
def scene() -> Devices:
    return Devices()


def consumers(scene: Devices, claim: str) -> list[str]:
    return [each["name"] for each in (scene.fields(claim).get("status") or {}).get("reservedFor") or ()]


def test_a_decision_during_the_write_of_a_claim_counts_its_devices(
    scene: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("p", "q"):
        scene.claim(name, count=2)
        scene.user(name, name)
    scene.stage.hear()
    during: list[bool] = []
    write = EngineClient.update

    def update(client: EngineClient, obj: Object, subresource: str = "") -> Object:
        if not during and obj.resource == RESOURCE_CLAIMS:
            during.append(True)
            while scene.stage.controller.process_next(timeout=0):
                pass
        return write(client, obj, subresource)

    monkeypatch.setattr(EngineClient, "update", update)
    assert {*scene.places().values()} == {"n1", "n2"}
    assert during
    assert len({*scene.devices("p"), *scene.devices("q")}) == 4


def test_a_claim_whose_allocation_is_being_written_is_not_allocated_again(
    scene: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.claim("mine")
    for name in ("p", "q"):
        scene.user(name, "mine")
    scene.stage.hear()
    during: list[bool] = []
    write = EngineClient.update

    def update(client: EngineClient, obj: Object, subresource: str = "") -> Object:
        if not during and obj.resource == RESOURCE_CLAIMS:
            during.append(True)
            while scene.stage.controller.process_next(timeout=0):
                pass
            assert "claim a/mine is in the process of being allocated" in scene.told("FailedScheduling")[0]
        return write(client, obj, subresource)

    monkeypatch.setattr(EngineClient, "update", update)
    scene.stage.work()
    scene.stage.pass_by(1)
    assert len({*scene.places().values()}) == 1
    assert {*consumers(scene, "mine")} == {"p", "q"}


def fail_once(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    original = getattr(EngineClient, method)

    def fail(*_: Any, **__: Any) -> None:
        monkeypatch.setattr(EngineClient, method, original)
        raise ServiceUnavailable("no")

    monkeypatch.setattr(EngineClient, method, fail)


def test_a_failed_binding_removes_the_reservation(scene: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.claim("mine")
    scene.user("p", "mine")
    fail_once(monkeypatch, "bind")
    assert scene.places() == {"p": ""}
    assert scene.devices("mine")
    assert consumers(scene, "mine") == []
    scene.stage.pass_by(1)
    assert scene.places()["p"]
    assert consumers(scene, "mine") == ["p"]


def test_a_failed_write_of_a_claim_releases_its_devices(scene: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.claim("mine", count=2)
    scene.user("p", "mine", nodeSelector={"kubernetes.io/hostname": "n1"})
    fail_once(monkeypatch, "update")
    assert scene.places() == {"p": ""}
    scene.stage.delete("/api/v1/namespaces/a/pods/p")
    scene.claim("other", count=2)
    scene.user("q", "other", nodeSelector={"kubernetes.io/hostname": "n1"})
    assert scene.places() == {"q": "n1"}


@pytest.fixture
def volumes() -> Scene:
    """Return two nodes, and two pods whose claims may be bound to the only volume, `v`."""
    scene = Scene()
    for name in ("n1", "n2"):
        scene.node(name)
    delayed = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    scene.stage.create(f"{STORAGE}/storageclasses", {"metadata": {"name": "local"}, **delayed})
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    volume = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/v"}, **common}
    scene.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": volume})
    scene.stage.patch("/api/v1/persistentvolumes/v/status", {"status": {"phase": "Available"}})
    for name in ("p", "q"):
        spec = {"resources": {"requests": {"storage": "1Gi"}}, **common}
        scene.stage.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})
        scene.pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
    scene.stage.hear()
    return scene


def reference(scene: Scene) -> str:
    volume = scene.stage.stored(VOLUMES, "v")
    assert volume is not None
    name: str = volume.to_dict()["spec"].get("claimRef", {}).get("name", "")
    return name


def test_a_volume_that_is_being_reserved_is_not_reserved_again(volumes: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert "2 node(s) didn't find available persistent volumes to bind" in volumes.told("FailedScheduling")[0]


def test_a_volume_whose_reservation_failed_is_free_again(volumes: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
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

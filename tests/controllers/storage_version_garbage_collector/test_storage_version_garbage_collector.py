"""Tests of the StorageVersion garbage collector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.storage_version_garbage_collector.controller import STORAGE_VERSIONS, build
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

VERSIONS = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
NAME = "apps.deployments"


@pytest.fixture
def stage() -> Iterator[WorkedStage]:
    switch({"StorageVersionAPI": True})
    kinds = builtin_kinds(served=["internal.apiserver.k8s.io/v1alpha1"])
    stage = WorkedStage(lambda stage: build(StageContext(stage), NoOptions()), kinds=kinds)
    stage.create("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
    yield stage
    switch({})


def lease(stage: WorkedStage, name: str, identity: str = "kube-apiserver") -> None:
    stage.create(LEASES, {"metadata": {"name": name, "labels": {"apiserver.kubernetes.io/identity": identity}}})


def storage_version(stage: WorkedStage, **servers: str) -> None:
    stage.create(VERSIONS, {"metadata": {"name": NAME}, "spec": {}})
    listed = [
        {"apiServerID": name, "encodingVersion": version, "decodableVersions": [version]}
        for name, version in servers.items()
    ]
    common = {"commonEncodingVersion": next(iter(servers.values()))} if len({*servers.values()}) == 1 else {}
    stage.patch(f"{VERSIONS}/{NAME}/status", {"status": {"storageVersions": listed, **common}})


def status(stage: WorkedStage) -> dict[str, Any]:
    found = stage.stored(STORAGE_VERSIONS, NAME)
    assert found is not None
    fields: dict[str, Any] = found.to_dict()["status"]
    return fields


def test_entries_of_living_servers_are_kept(stage: WorkedStage) -> None:
    lease(stage, "a")
    storage_version(stage, a="apps/v1")
    stage.work()
    assert stage.written() == []


def test_a_storage_version_without_entries_is_kept(stage: WorkedStage) -> None:
    stage.create(VERSIONS, {"metadata": {"name": NAME}, "spec": {}})
    stage.work()
    assert stage.names(STORAGE_VERSIONS) == [NAME]


@pytest.mark.parametrize("identity", [None, "other"])
def test_an_entry_without_an_identity_lease_is_removed(stage: WorkedStage, identity: str | None) -> None:
    lease(stage, "a")
    if identity is not None:
        lease(stage, "b", identity)
    storage_version(stage, a="apps/v1", b="apps/v1beta1")
    stage.work()
    assert [each["apiServerID"] for each in status(stage)["storageVersions"]] == ["a"]
    assert status(stage)["commonEncodingVersion"] == "apps/v1"
    (condition,) = status(stage)["conditions"]
    assert (condition["type"], condition["status"]) == ("AllEncodingVersionsEqual", "True")
    assert (condition["reason"], condition["message"]) == ("CommonEncodingVersionSet", "Common encoding version set")


def test_the_end_of_a_server_removes_its_entries(stage: WorkedStage) -> None:
    lease(stage, "a")
    lease(stage, "b")
    storage_version(stage, a="apps/v1", b="apps/v1")
    stage.work()
    stage.delete(f"{LEASES}/b")
    stage.work()
    assert [each["apiServerID"] for each in status(stage)["storageVersions"]] == ["a"]
    stage.delete(f"{LEASES}/a")
    stage.work()
    assert stage.names(STORAGE_VERSIONS) == []

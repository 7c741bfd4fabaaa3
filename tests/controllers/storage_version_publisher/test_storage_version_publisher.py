"""Tests of the publication of StorageVersions: their content, entries of several servers, and retries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.controllers.storage_version_garbage_collector.controller import STORAGE_VERSIONS
from ctrlmgr.controllers.storage_version_publisher.published_versions import PublishedVersion, published_versions
from ctrlmgr.controllers.storage_version_publisher.publisher import (
    StorageVersionPublisher,
    new_storage_version_publisher,
)
from ctrlmgr.engine.features import gates
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.manager import Controller
from tests.controllers.worked_stage import WorkedStage

LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
DEPLOYMENTS = Resource("apps", "deployments")
VERSION = PublishedVersion("apps.deployments", (DEPLOYMENTS,), "apps/v1", ("apps/v1",), ("apps/v1",))
OTHER = VERSION._replace(encoding="apps/v2", decodable=("apps/v2", "apps/v1"))


class Stage(WorkedStage):
    def __init__(self) -> None:
        self.versions, self.server = [VERSION], "one"
        self.results: list[tuple[Resource, str]] = []
        super().__init__(self.build, kinds=builtin_kinds(served=["internal.apiserver.k8s.io/v1alpha1"]))

    def published(self, resources: Iterable[Resource]) -> None:
        self.results += [(each, "") for each in resources]

    def failed(self, resources: Iterable[Resource], problem: str) -> None:
        self.results += [(each, problem) for each in resources]

    def build(self, stage: WorkedStage) -> Controller:
        publisher = StorageVersionPublisher(self.server, self.versions, self, stage.log, stage.clock)
        return new_storage_version_publisher(
            publisher, stage.apiserver_client, stage.log, clock=stage.clock, random=stage.random
        )

    def begin(self, server: str, version: PublishedVersion) -> None:
        self.server, self.versions = server, [version]
        self.create(LEASE_PATH, {"metadata": {"name": server}})
        self.start()
        self.work()

    @property
    def status(self) -> dict[str, Any]:
        found = self.log.get(STORAGE_VERSIONS, Key("", "apps.deployments"))
        assert found is not None
        status: dict[str, Any] = found.to_dict()["status"]
        return status


@pytest.fixture
def stage() -> Iterator[Stage]:
    gates.switch({"StorageVersionAPI": True})
    try:
        stage = Stage()
        stage.namespace("kube-system")
        yield stage
    finally:
        gates.switch({})


def test_nothing_is_published_before_the_identity_lease(stage: Stage) -> None:
    stage.work()
    stage.pass_by(5)
    assert stage.names(STORAGE_VERSIONS) == []
    stage.create(LEASE_PATH, {"metadata": {"name": "one"}})
    stage.pass_by(1)
    assert stage.names(STORAGE_VERSIONS) == ["apps.deployments"]
    assert stage.results == [(DEPLOYMENTS, "")]


def test_servers_share_a_storage_version(stage: Stage) -> None:
    stage.begin("one", VERSION)
    assert stage.status["commonEncodingVersion"] == "apps/v1"
    stage.begin("two", OTHER)
    status = stage.status
    assert status["storageVersions"] == [VERSION.entry("one"), OTHER.entry("two")]
    assert "commonEncodingVersion" not in status
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [("AllEncodingVersionsEqual", "False")]


def test_a_changed_storage_version_is_corrected(stage: Stage) -> None:
    stage.begin("one", VERSION)
    stage.delete("/apis/internal.apiserver.k8s.io/v1alpha1/storageversions/apps.deployments")
    stage.pass_by(599)
    assert stage.names(STORAGE_VERSIONS) == []
    stage.pass_by(2)
    assert stage.status["storageVersions"] == [VERSION.entry("one")]


def test_a_failed_publication_is_retried(stage: Stage) -> None:
    stage.begin("one", VERSION._replace(decodable=()))
    assert [(resource, bool(problem)) for resource, problem in stage.results] == [(DEPLOYMENTS, True)]
    stage.pass_by(1.1)
    assert len(stage.results) == 2


def test_the_versions_of_built_in_kinds() -> None:
    found = {each.name: each for each in published_versions(builtin_kinds())}
    assert found["core.events"].resources == (Resource("", "events"), Resource("events.k8s.io", "events"))
    assert found["core.events"].decodable == ("v1", "events.k8s.io/v1")
    assert found["core.events"].served == ("v1",)
    scaler = found["autoscaling.horizontalpodautoscalers"]
    assert (scaler.encoding, scaler.decodable) == ("autoscaling/v2", ("autoscaling/v2", "autoscaling/v1"))
    assert "authorization.k8s.io.subjectaccessreviews" not in found
    assert all(each.encoding in each.decodable and set(each.served) <= {*each.decodable} for each in found.values())

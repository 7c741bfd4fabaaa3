"""Tests of identity Leases: their names, renewal, deletion at start and stop, and the collection of expired ones."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ctrlmgr.api.resource import LEASES
from ctrlmgr.controllers.apiserver_identity.controller import (
    IdentityPublisher,
    Server,
    new_identity_publisher,
    new_lease_collector,
)
from ctrlmgr.controllers.apiserver_identity.identity_lease import identity_of_server
from ctrlmgr.manager import Controller
from tests.controllers.worked_stage import WorkedStage

LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
OWN = "apiserver-wlv32tlttr4jl3gtroqexyxapa"
LABELS = {"apiserver.kubernetes.io/identity": "kube-apiserver"}


class Stage(WorkedStage):
    publisher: IdentityPublisher

    def __init__(self) -> None:
        super().__init__(self.build)

    def build(self, stage: WorkedStage) -> Controller:
        server = Server("vm", 6443)
        self.publisher = new_identity_publisher(
            server, stage.apiserver_client, stage.log, clock=stage.clock, random=stage.random
        )
        return self.publisher._controller

    @property
    def leases(self) -> dict[str, Any]:
        return {each.name: each.to_dict() for each in self.log.snapshot(LEASES, namespace="kube-system").objects}

    def lease(self, name: str, labels: dict[str, str], **spec: Any) -> None:
        self.create(LEASE_PATH, {"metadata": {"name": name, "labels": labels}, "spec": spec})


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.work()  # the namespace does not exist yet
    stage.namespace("kube-system")
    stage.pass_by(1)
    return stage


def test_the_identity_is_that_of_kubernetes() -> None:
    assert identity_of_server("vm", 6443) == OWN  # as in a recording of a cluster on the host "vm"
    others = {identity_of_server("vm", 6444), identity_of_server("vm2", 6443)}
    assert len({OWN, *others}) == 3


def test_the_lease_has_the_fields_of_kubernetes(stage: Stage) -> None:
    lease = stage.leases[OWN]
    assert lease["metadata"]["labels"] == {**LABELS, "kubernetes.io/hostname": "vm"}
    assert lease["spec"]["leaseDurationSeconds"] == 3600
    holder, _, number = lease["spec"]["holderIdentity"].partition("_")
    assert (holder, len(number)) == (OWN, 36)


def test_the_lease_is_renewed_every_10_seconds(stage: Stage) -> None:
    before = stage.leases[OWN]
    stage.pass_by(9)
    assert stage.leases[OWN] == before
    stage.pass_by(1.5)
    after = stage.leases[OWN]
    assert after["spec"]["renewTime"] > before["spec"]["renewTime"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_deleted_lease_is_created_again(stage: Stage) -> None:
    stage.delete(f"{LEASE_PATH}/{OWN}")
    stage.pass_by(10.5)
    assert OWN in stage.leases


def test_a_restarted_process_replaces_its_lease(stage: Stage) -> None:
    before = stage.leases[OWN]
    stage.start()
    stage.work()
    after = stage.leases[OWN]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"]["holderIdentity"] != before["spec"]["holderIdentity"]


def test_a_stopped_process_deletes_its_lease(stage: Stage) -> None:
    stop = threading.Event()
    stop.set()
    stage.publisher.run(stop)
    assert stage.leases == {}


def collector(stage: WorkedStage) -> Controller:
    return new_lease_collector(stage.apiserver_client, stage.log, clock=stage.clock, random=stage.random)


def test_expired_identity_leases_are_deleted_each_hour(stage: Stage) -> None:
    stage._make = collector
    stage.start()
    stage.work()
    now = stage.leases[OWN]["spec"]["renewTime"]
    stage.lease("expired", LABELS, holderIdentity="a", leaseDurationSeconds=60, renewTime=now)
    stage.lease("invalid", LABELS, holderIdentity="a")
    stage.lease("valid", LABELS, holderIdentity="a", leaseDurationSeconds=7200, renewTime=now)
    stage.lease("elected", {}, holderIdentity="a", leaseDurationSeconds=60, renewTime=now)
    stage.pass_by(3500)
    assert {"expired", "invalid"} <= stage.leases.keys()
    stage.pass_by(90)
    assert {"expired", "invalid"} <= stage.leases.keys()
    stage.pass_by(20)
    assert stage.leases.keys() == {"valid", "elected"}

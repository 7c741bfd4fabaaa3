from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.service_cidr.controller import (
    FINALIZER,
    build,
    is_needed,
)
from ctrlmgr.kinds.allocators.allocation_claims import ALLOCATOR, LABEL_MANAGED_BY
from ctrlmgr.kinds.allocators.service_cidrs import SERVICE_CIDRS
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
SERVICES = "/api/v1/namespaces/a/services"
START = "2026-01-01T00:00:00Z"
SECOND = "10.7.0.0/29"  # six addresses


def controller(stage: WorkedStage) -> Controller:
    return build(StageContext(stage), NoOptions())


@pytest.fixture
def stage() -> WorkedStage:
    stage = WorkedStage(controller)
    stage.namespace("a")
    return stage


def make(stage: WorkedStage, name: str, *cidrs: str) -> dict[str, Any]:
    stage.create(CIDRS, {"metadata": {"name": name}, "spec": {"cidrs": cidrs}})
    stage.work()
    found: dict[str, Any] = stage.send("GET", f"{CIDRS}/{name}").body
    return found


def serve(stage: WorkedStage, name: str, address: str) -> None:
    stage.create(SERVICES, {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "clusterIP": address}})


def ready_condition(stage: WorkedStage, name: str) -> tuple[str, str, str]:
    [condition] = stage.send("GET", f"{CIDRS}/{name}").body["status"]["conditions"]
    return condition["status"], condition["reason"], condition["message"]


def test_a_new_service_cidr_is_protected_and_ready(stage: WorkedStage) -> None:
    made = make(stage, "more", SECOND)
    assert made["metadata"]["finalizers"] == [FINALIZER]
    assert ready_condition(stage, "more") == ("True", "", "Kubernetes Service CIDR is ready")
    before = stage.log.head().revision
    stage.start()
    stage.work()
    assert stage.log.head().revision == before


def test_conditions_of_other_clients_are_kept_except_not_ready(stage: WorkedStage) -> None:
    make(stage, "more", SECOND)
    mine = {"type": "Mine", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": START}
    ready = {"type": "Ready", "status": "False", "reason": "r", "message": "m", "lastTransitionTime": START}
    stage.patch(f"{CIDRS}/more/status", {"status": {"conditions": [mine, ready]}})
    stage.work()
    conditions = stage.send("GET", f"{CIDRS}/more").body["status"]["conditions"]
    assert [(each["type"], each["status"]) for each in conditions] == [("Mine", "True"), ("Ready", "True")]


def test_unneeded_service_cidr_is_deleted_after_a_delay(stage: WorkedStage) -> None:
    make(stage, "more", SECOND)
    stage.delete(f"{CIDRS}/more")
    stage.pass_by(9)
    assert stage.names(SERVICE_CIDRS) == ["more"]
    stage.pass_by(1)
    assert stage.names(SERVICE_CIDRS) == []


def test_a_needed_service_cidr_is_not_ready_until_the_service_is_deleted(stage: WorkedStage) -> None:
    make(stage, "more", SECOND)
    serve(stage, "web", "10.7.0.5")
    stage.delete(f"{CIDRS}/more")
    stage.pass_by(60)
    assert ready_condition(stage, "more") == (
        "False",
        "Terminating",
        "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
    )
    stage.delete(f"{SERVICES}/web")
    stage.work()
    assert stage.names(SERVICE_CIDRS) == []


def test_a_needed_service_cidr_is_deleted_when_another_contains_its_addresses(stage: WorkedStage) -> None:
    make(stage, "more", SECOND)
    serve(stage, "web", "10.7.0.5")
    stage.delete(f"{CIDRS}/more")
    stage.pass_by(60)
    make(stage, "wider", "10.7.0.0/24")
    assert stage.names(SERVICE_CIDRS) == ["wider"]


def test_other_finalizers_delay_deletion(stage: WorkedStage) -> None:
    make(stage, "more", SECOND)
    stage.patch(f"{CIDRS}/more", {"metadata": {"finalizers": [FINALIZER, "example.com/mine"]}})
    stage.delete(f"{CIDRS}/more")
    stage.pass_by(60)
    assert stage.send("GET", f"{CIDRS}/more").body["metadata"]["finalizers"] == ["example.com/mine"]
    stage.patch(f"{CIDRS}/more", {"metadata": {"finalizers": None}})
    stage.work()
    assert stage.names(SERVICE_CIDRS) == []


def service_cidr(name: str, *cidrs: str, **metadata: Any) -> Object:
    head = {"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": name, **metadata}}
    return Object.from_dict({**head, "spec": {"cidrs": list(cidrs)}})


def address(name: str, manager: str = ALLOCATOR) -> Object:
    metadata = {"name": name, "labels": {LABEL_MANAGED_BY: manager}}
    return Object.from_dict({"kind": "IPAddress", "apiVersion": "networking.k8s.io/v1", "metadata": metadata})


BOTH = service_cidr("both", "10.7.0.0/24", "fd00::/112")


@pytest.mark.parametrize(
    ("others", "addresses", "needed"),
    [
        pytest.param([], [], False, id="no addresses"),
        pytest.param([], ["10.7.0.1"], True, id="an address of it"),
        pytest.param([], ["fd00::1"], True, id="an address of its second range"),
        pytest.param([], ["10.8.0.1", "fd01::1"], False, id="addresses of others"),
        pytest.param([], ["10.7.0.0", "10.7.0.255"], False, id="addresses that no range gives"),
        pytest.param([service_cidr("b", "10.7.0.0/24", "fd00::/112")], ["10.7.0.1"], False, id="another of the same"),
        pytest.param([service_cidr("b", "10.0.0.0/8")], ["10.7.0.1"], False, id="another holds it too"),
        pytest.param([service_cidr("b", "10.0.0.0/8")], ["10.7.0.1", "fd00::1"], True, id="but not all"),
        pytest.param([service_cidr("b", "10.7.0.0/28")], ["10.7.0.1"], False, id="a part that holds it"),
        pytest.param([service_cidr("b", "10.7.0.0/28")], ["10.7.0.16"], True, id="a part that does not"),
        pytest.param([service_cidr("b", "10.7.0.0/28")], ["10.7.0.15"], True, id="a part that does not give it"),
        pytest.param(
            [service_cidr("b", "10.7.0.0/24", deletionTimestamp=START)], ["10.7.0.1"], True, id="another that goes too"
        ),
        pytest.param(
            [service_cidr("b", "10.0.0.0/8", deletionTimestamp=START)], ["10.7.0.1"], False, id="a larger one that goes"
        ),
    ],
)
def test_needed_service_cidrs(others: list[Object], addresses: list[str], needed: bool) -> None:
    assert is_needed(BOTH, others, [address(each) for each in addresses]) is needed
    assert not is_needed(BOTH, others, [address(each, "somebody.else") for each in addresses])

"""Tests of the default ServiceCIDR, the Service `kubernetes` and its address, each object separately."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS, NAMESPACES, SERVICES, Key
from ctrlmgr.controllers.bootstrap.address import endpoint_address
from ctrlmgr.controllers.bootstrap.cidr import Step, plan
from ctrlmgr.controllers.bootstrap.service import ServiceSpec, new_service, reset_service
from ctrlmgr.kinds.allocators.service_cidrs import SERVICE_CIDRS
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from tests.controllers.bootstrap.process import SERVICE_CIDR, Process

NAME = Key("", "kubernetes")


# The default ServiceCIDR.


def service_cidr(*cidrs: str, ready: str = "", deleted: bool = False) -> Object:
    metadata = {"name": "kubernetes", "uid": "u"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})
    condition = {"type": "Ready", "status": ready, "reason": "Because", "message": "it is not"}
    fields: dict[str, Any] = {"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", "metadata": metadata}
    status = {"conditions": [condition] if ready else None}
    return Object.from_dict({**fields, "spec": {"cidrs": list(cidrs)}, "status": status})


@pytest.mark.parametrize(
    ("current", "cidrs", "expected"),
    [
        pytest.param(None, ["10.0.0.0/16"], Step.CREATE, id="missing"),
        pytest.param(service_cidr("10.0.0.0/16"), ["10.0.0.0/16"], Step.SET_READY, id="new"),
        pytest.param(service_cidr("10.0.0.0/16", ready="Unknown"), ["10.0.0.0/16"], Step.SET_READY, id="unknown"),
        pytest.param(service_cidr("10.0.0.0/16", ready="True"), ["10.0.0.0/16"], Step.NOTHING, id="right"),
        pytest.param(service_cidr("10.0.0.0/16", ready="False"), ["10.0.0.0/16"], Step.WARN, id="not ready"),
        pytest.param(service_cidr("10.0.0.0/16"), ["10.0.0.0/16", "fd00::/112"], Step.WIDEN, id="dual-stack now"),
        pytest.param(service_cidr("10.0.0.0/16", "fd00::/112"), ["10.0.0.0/16"], Step.WARN, id="single-stack now"),
        pytest.param(service_cidr("10.0.0.0/16", deleted=True), ["10.1.0.0/16"], Step.NOTHING, id="on its way out"),
    ],
)
def test_the_service_cidr_is_created_updated_or_kept(current: Object | None, cidrs: list[str], expected: Step) -> None:
    assert plan(current, cidrs).step is expected


def test_the_service_cidr_is_created_and_ready() -> None:
    process = Process().start()
    fields = process.fields(SERVICE_CIDRS, NAME)
    assert fields["spec"] == {"cidrs": ["10.96.0.0/16"]}
    [condition] = fields["status"]["conditions"]
    assert condition == {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }


def test_a_cluster_becomes_dual_stack() -> None:
    process = Process().start()
    both = Process(
        ip="192.0.2.3", beside=process, ranges=Ranges.parse("10.96.0.0/16,fd00::/112", "30000-32767")
    ).start()
    fields = both.fields(SERVICE_CIDRS, NAME)
    assert fields["spec"] == {"cidrs": ["10.96.0.0/16", "fd00::/112"]}
    assert fields["status"]["conditions"][0]["status"] == "True"


def test_settings_that_contradict_the_service_cidr_are_logged_once() -> None:
    process = Process().start()
    other = Process(ip="192.0.2.3", beside=process, ranges=Ranges.parse("10.97.0.0/16", "30000-32767")).start()
    for _ in range(3):
        other.do("default ServiceCIDR")
    recorded = [each.to_dict() for each in process.log.snapshot(EVENTS).objects]
    recorded = [each for each in recorded if each["involvedObject"]["kind"] == "ServiceCIDR"]
    assert [(each["reason"], each["count"], each["message"]) for each in recorded] == [
        (
            "KubernetesDefaultServiceCIDRInconsistent",
            1,
            "The default ServiceCIDR [10.96.0.0/16] does not match the controller flag configurations [10.97.0.0/16]",
        )
    ]
    assert recorded[0]["reportingComponent"] == "kubernetes-service-cidr-controller"
    assert "action" not in recorded[0]


def test_condition_set_by_another_client_is_kept() -> None:
    process = Process().start()
    fields = process.fields(SERVICE_CIDRS, NAME)
    fields["status"]["conditions"][0] |= {"status": "False", "reason": "Mine", "message": "because I say so"}
    process.client.update(Object.from_dict(fields), "status")
    process.step_informers()
    process.do("default ServiceCIDR")
    assert process.fields(SERVICE_CIDRS, NAME)["status"]["conditions"][0]["status"] == "False"
    messages = [each.to_dict()["message"] for each in process.log.snapshot(EVENTS).objects]
    assert "Configuration matches, but because I say so" in messages


def test_existing_objects_are_accepted_after_a_conflict() -> None:
    process = Process()
    late = Process(ip="192.0.2.3", beside=process)
    late.informers.sync()
    process.start()
    for job in ("system namespaces", "default ServiceCIDR", "kubernetes service"):
        late.bootstrap.periodic.jobs[job]()
    while any(each.process_next(0) for each in late.controllers):
        pass
    assert len(late.log.snapshot(NAMESPACES).objects) == 4
    assert late.send("GET", SERVICE_CIDR).code == 200
    assert late.published() == [("192.0.2.2", 6443), ("192.0.2.3", 6443)]


def test_another_process_can_create_the_service_first(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    other = Process(ip="192.0.2.3", beside=process)
    other.ready.now = False
    other.start()
    create = process.client.create

    def beaten(obj: Object) -> Object:
        if obj.resource == SERVICES and other.get(SERVICES) is None:
            other.client.create(obj)
        return create(obj)

    monkeypatch.setattr(process.client, "create", beaten)
    process.start()
    assert process.published() == [("192.0.2.2", 6443)]


def test_an_address_of_another_service_is_an_error() -> None:
    process = Process()
    process.namespace("ns")
    spec = {"clusterIP": "10.96.0.1", "ports": [{"port": 80}]}
    body = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "thief"}, "spec": spec}
    assert process.send("POST", "/api/v1/namespaces/ns/services", body).code == 201
    process.start()
    assert process.get(SERVICES) is None
    process.delete("/api/v1/namespaces/ns/services/thief")
    process.tick()
    assert process.get(SERVICES) is not None


# The Service.


def stored(spec: ServiceSpec, **changes: Any) -> Object:
    fields = new_service(spec).to_dict()
    fields["spec"] |= changes
    return Object.from_dict(fields)


PLAIN, EXPOSED = ServiceSpec("10.96.0.1", 6443), ServiceSpec("10.96.0.1", 6443, 30443)


@pytest.mark.parametrize(
    ("current", "spec"),
    [
        pytest.param(stored(PLAIN), PLAIN, id="as created"),
        pytest.param(stored(EXPOSED), EXPOSED, id="with a node port"),
        pytest.param(stored(PLAIN, sessionAffinity="ClientIP"), PLAIN, id="what else it says"),
    ],
)
def test_a_correct_service_is_not_written(current: Object, spec: ServiceSpec) -> None:
    assert reset_service(current, spec) is None


@pytest.mark.parametrize(
    ("current", "spec"),
    [
        pytest.param(stored(PLAIN), EXPOSED, id="no node port yet"),
        pytest.param(stored(EXPOSED), PLAIN, id="a node port too many"),
        pytest.param(stored(PLAIN), PLAIN._replace(secure_port=7443), id="another port"),
        pytest.param(stored(PLAIN, ports=[*PLAIN.ports, {"name": "more", "port": 1}]), PLAIN, id="a port too many"),
        pytest.param(stored(PLAIN, type="LoadBalancer"), PLAIN, id="type"),
        pytest.param(stored(PLAIN, ports=[{**PLAIN.ports[0], "appProtocol": "https"}]), PLAIN, id="protocol"),
    ],
)
def test_a_service_is_reset_if_it_differs(current: Object, spec: ServiceSpec) -> None:
    wanted = reset_service(current, spec)
    assert wanted is not None
    fields = wanted.to_dict()["spec"]
    assert (fields["type"], fields["ports"]) == (spec.type, spec.ports)
    assert fields["clusterIP"] == "10.96.0.1"


# The address.


@pytest.mark.parametrize(
    ("advertised", "family", "route", "expected"),
    [
        pytest.param("192.0.2.9", "IPv4", "192.0.2.1", "192.0.2.9", id="what is advertised"),
        pytest.param("2001:DB8::9", "IPv6", "2001:db8::1", "2001:db8::9", id="in canonical form"),
        pytest.param("127.0.0.1", "IPv4", "192.0.2.1", "192.0.2.1", id="not loopback"),
        pytest.param("0.0.0.0", "IPv4", "192.0.2.1", "192.0.2.1", id="not everywhere"),
        pytest.param("169.254.1.1", "IPv4", "192.0.2.1", "192.0.2.1", id="not link-local"),
        pytest.param("2001:db8::9", "IPv4", "192.0.2.1", "192.0.2.1", id="not of another family"),
        pytest.param("::1", "IPv6", "2001:db8::1", "2001:db8::1", id="not loopback of IPv6"),
        pytest.param("localhost", "IPv4", "192.0.2.1", "192.0.2.1", id="not a name"),
        pytest.param("127.0.0.1", "IPv4", "127.0.0.1", None, id="no default route"),
    ],
)
def test_the_published_address_is_chosen(advertised: str, family: str, route: str, expected: str | None) -> None:
    asked: list[int] = []

    def default_route(version: int) -> str:
        asked.append(version)
        return route

    assert endpoint_address(advertised, family, default_route) == expected
    assert asked in ([], [6 if family == "IPv6" else 4])

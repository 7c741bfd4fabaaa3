"""Tests of the condition Available of an APIService: a problem with the Service, an extension server that does not
respond, or success.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.apiservices.availability import (
    LOCAL,
    PASSED,
    failing,
    problem_of,
    unmet,
    with_availability,
)
from ctrlmgr.controllers.apiservices.availability_controller import ATTEMPTS, new_availability_controller
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.engine.calls.remote_services import RemoteService, remote_service
from tests.controllers.customresourcedefinitions.defined import EverythingStage
from tests.controllers.worked_stage import MERGE

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = "v1.ext.example"
SPEC = {
    "group": "ext.example",
    "version": "v1",
    "groupPriorityMinimum": 100,
    "versionPriority": 10,
    "insecureSkipTLSVerify": True,
    "service": {"name": "ext", "namespace": "shop", "port": 8443},
}


def api_service(**more: Any) -> Object:
    body = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": NAME}, "spec": SPEC}
    return Object.from_dict({**body, **more})


def remote() -> RemoteService:
    found = remote_service(api_service())
    assert found is not None
    return found


def service(**spec: Any) -> Object:
    head = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ext", "namespace": "shop"}}
    return Object.from_dict({**head, "spec": spec})


def endpoint_slice(ports: Sequence[Any], *ready: bool | None) -> Object:
    endpoints = [{"addresses": ["10.0.0.1"], "conditions": {} if each is None else {"ready": each}} for each in ready]
    head = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "ext-1"}}
    return Object.from_dict({**head, "ports": list(ports), "endpoints": endpoints})


LISTENS = service(type="ClusterIP", ports=[{"name": "https", "port": 8443}])
HTTPS = {"name": "https", "port": 443}


@pytest.mark.parametrize(
    ("found", "slices", "reason", "message"),
    [
        (None, [], "ServiceNotFound", 'service/ext in "shop" is not present'),
        (
            service(type="ClusterIP", ports=[{"port": 1}]),
            [],
            "ServicePortError",
            'service/ext in "shop" is not listening on port 8443',
        ),
        (LISTENS, [], "EndpointsNotFound", 'cannot find endpointslices for service/ext in "shop"'),
        (
            LISTENS,
            [endpoint_slice([HTTPS], False), endpoint_slice([{"name": "other", "port": 1}], True)],
            "MissingEndpoints",
            'endpointslices for service/ext in "shop" have no addresses with port name "https"',
        ),
    ],
)
def test_an_unreachable_service_names_its_missing_object(
    found: Object | None, slices: list[Object], reason: str, message: str
) -> None:
    assert unmet(remote(), found, slices) == ("False", reason, message)


@pytest.mark.parametrize("ready", [True, None])
def test_a_service_with_an_endpoint_that_can_be_ready_is_probed(ready: bool | None) -> None:
    assert unmet(remote(), LISTENS, [endpoint_slice([HTTPS], ready)]) is None
    assert unmet(remote(), service(type="ExternalName", externalName="x"), []) is None


URL = "https://10.0.0.1:443/apis/ext.example/v1"


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply(code=200), ""),
        (Reply(code=302), f"failing or missing response from {URL}: bad status from {URL}: 302"),
        (Reply(code=503), f"failing or missing response from {URL}: bad status from {URL}: 503"),
        (
            Reply(problem="dial tcp 10.0.0.1:443: connect: connection refused"),
            f'failing or missing response from {URL}: Get "{URL}": dial tcp 10.0.0.1:443: connect: connection refused',
        ),
        (
            Reply(problem="context deadline exceeded"),
            f'failing or missing response from {URL}: Get "{URL}": context deadline exceeded '
            "(Client.Timeout exceeded while awaiting headers)",
        ),
    ],
)
def test_a_probe_succeeds_or_names_its_reason(reply: Reply, problem: str) -> None:
    assert problem_of(URL, reply) == problem


def test_the_condition_has_the_time_of_its_last_transition() -> None:
    first = with_availability(api_service(), failing("one"), "then")
    assert first is not None
    again = with_availability(first, failing("two"), "later")
    assert again is not None
    assert again.to_dict()["status"]["conditions"] == [
        {
            "lastTransitionTime": "then",
            "message": "two",
            "reason": "FailedDiscoveryCheck",
            "status": "False",
            "type": "Available",
        }
    ]
    passed = with_availability(again, PASSED, "later")
    assert passed is not None
    assert passed.to_dict()["status"]["conditions"][0]["lastTransitionTime"] == "later"
    assert with_availability(passed, PASSED, "much later") is None


class Stage(EverythingStage):
    """The availability controller, and an extension server with programmed responses."""

    reply = Reply(code=200)

    def made(self) -> Any:
        self.calls: list[Call] = []
        return new_availability_controller(
            self.informers,
            self.apiserver_client,
            self.log,
            self._asked,
            lambda: b"certificate",
            clock=self.clock,
            random=self.random,
        )

    def _asked(self, calls: Sequence[Call]) -> list[Reply]:
        self.calls += calls
        return [self.reply for _ in calls]

    @property
    def condition(self) -> tuple[str, str]:
        """Return the status and the reason of the condition Available."""
        found = self.send("GET", f"{SERVICES}/{NAME}").body["status"]["conditions"][0]
        return found["status"], found["reason"]


def test_a_server_is_probed_after_changes_of_its_service_and_while_it_fails() -> None:
    stage = Stage()
    stage.send("POST", SERVICES, api_service().to_dict())
    stage.work()
    assert (stage.condition, stage.calls) == (("False", "ServiceNotFound"), [])
    stage.reply = Reply(code=503)
    spec = {"type": "ExternalName", "externalName": "ext.example"}
    stage.send("POST", "/api/v1/namespaces/shop/services", {"metadata": {"name": "ext"}, "spec": spec})
    stage.work()
    assert stage.condition == ("False", "FailedDiscoveryCheck")
    first = stage.calls[0]
    assert (first.url, first.server_name) == ("https://ext.example:8443/apis/ext.example/v1", "ext.shop.svc")
    assert (first.is_checked, first.is_plain, first.credentials.certificate) == (False, True, b"certificate")
    assert len(stage.calls) % ATTEMPTS == 0
    stage.reply = Reply(code=200)
    stage.pass_by(30)
    assert stage.condition == ("True", "Passed")
    asked = len(stage.calls)
    stage.pass_by(29)
    assert len(stage.calls) == asked
    stage.pass_by(2)
    assert len(stage.calls) > asked


def test_a_version_that_returns_to_this_server_is_local() -> None:
    stage = Stage()
    stage.send("POST", SERVICES, api_service().to_dict())
    stage.work()
    stage.send(
        "PATCH", f"{SERVICES}/{NAME}", {"spec": {"service": None, "insecureSkipTLSVerify": False}}, media_type=MERGE
    )
    stage.work()
    assert stage.condition == (LOCAL.status, LOCAL.reason)

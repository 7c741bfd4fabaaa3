"""Tests of the subresource `proxy` in admission and discovery, and of the endpoint that is chosen for a Service."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation
from ctrlmgr.errors import ServiceUnavailable
from ctrlmgr.server.proxies.proxy_backends import ProxyName, backend_of_service
from tests.server.site import make, running


class ConnectionRecorder:
    """An admission chain that records the requested connections and refuses them."""

    def __init__(self) -> None:
        self.options: list[Any] = []

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return operation is Verb.CONNECT

    def admit(self, attributes: Attributes) -> Operation[None]:
        yield from ()
        self.options.append((attributes.name, attributes.object))
        raise attributes.forbidden("seen")


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        ("services/https:a:80/proxy/x/y", "https:a:80", {"path": "/x/y"}),
        ("services/a/proxy/x/y/?path=/other", "a", {"path": "/x/y/"}),
        ("services/a/proxy/", "a", {"path": "/"}),
        ("services/a/proxy", "a", {}),
    ],
)
def test_admission_receives_the_options(path: str, name: str, expected: dict[str, str]) -> None:
    made = make()
    with running(made) as site:
        seen = ConnectionRecorder()
        made.backend.engine.admission = cast("Any", seen)
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            assert site.ask(f"/api/v1/namespaces/default/{path}", method).status == 403
        options = {"kind": "ServiceProxyOptions", "apiVersion": "v1", **expected}
        assert seen.options == [(name, options)] * 6


def test_discovery_lists_the_proxies() -> None:
    with running(make()) as site:
        found = {each["name"]: each for each in site.ask("/api/v1").json["resources"]}
    for kind in ("Node", "Pod", "Service"):
        listed = found[f"{kind.lower()}s/proxy"]
        assert (listed["kind"], listed["namespaced"]) == (f"{kind}ProxyOptions", kind != "Node")
        assert listed["verbs"] == ["create", "delete", "get", "patch", "update"]


class Objects:
    """A view that contains some objects."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self._objects = [Object.from_dict(each) for each in objects]

    def get(self, resource: Resource, key: Key) -> Object | None:
        return next((each for each in self._objects if each.resource == resource and each.key == key), None)


def pod(name: str, address: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    status = {"podIP": address, "podIPs": [{"ip": address}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": status}


def address(name: str, ip: str) -> dict[str, Any]:
    return {"ip": ip, "targetRef": {"kind": "Pod", "namespace": "default", "name": name}}


METADATA = {"name": "s", "namespace": "default"}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": METADATA, "spec": {"ports": [{"port": 80, "name": "a"}]}}
SUBSETS = [
    {"addresses": [address("one", "10.0.0.1"), address("two", "10.0.0.2")], "ports": [{"name": "a", "port": 8080}]},
    {"addresses": [address("here", "127.0.0.1")], "ports": [{"name": "local", "port": 8080}]},
    {"addresses": [address("three", "10.0.0.3")], "ports": [{"name": "b", "port": 9090}]},
    {"notReadyAddresses": [address("four", "10.0.0.4")], "ports": [{"name": "a", "port": 8080}]},
    {"addresses": [address("one", "10.0.0.9"), address("gone", "10.0.0.5")], "ports": [{"name": "a", "port": 8080}]},
]


def test_an_endpoint_is_chosen_at_random_among_ready_pods_with_the_port() -> None:
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": METADATA, "subsets": SUBSETS}
    here = pod("here", "127.0.0.1")
    view = Objects(endpoints, here, *(pod(name, f"10.0.0.{at}") for at, name in enumerate(("one", "two", "three"), 1)))
    service, random = Object.from_dict(SERVICE), Random(1)

    def chosen(port: str) -> set[tuple[str, str]]:
        found = (
            backend_of_service(service, ProxyName("", "s", port), "s", cast("Any", view), random) for _ in range(50)
        )
        return {(each.host, each.port) for each in found}

    assert chosen("a") == chosen("80") == {("10.0.0.1", "8080"), ("10.0.0.2", "8080")}
    assert chosen("b") == {("10.0.0.3", "9090")}
    for port in ("absent", "local"):
        with pytest.raises(ServiceUnavailable, match='no endpoints available for service "s"'):
            chosen(port)

"""Tests of servers that share only the event log."""

from __future__ import annotations

from typing import Any

from ctrlmgr.kinds.allocators.allocation_claims import Claim
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS
from tests.engine.stage import Response, Stage

SERVICES = "/api/v1/namespaces/ns/services"


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def held(response: Response) -> tuple[str, int]:
    spec = response.body["spec"]
    return spec["clusterIP"], spec["ports"][0]["nodePort"]


def test_servers_with_equal_random_numbers_allocate_different_values() -> None:
    first = Stage(seed=1)
    first.namespace("ns")
    second = Stage(log=first.log, seed=1)
    for turn in range(20):
        given = {
            held(server.send("POST", SERVICES, service(f"{name}{turn}", type="NodePort")))
            for server, name in ((first, "a"), (second, "b"))
        }
        assert len({address for address, _ in given}) == len({port for _, port in given}) == 2
    first.send("GET", SERVICES)
    claims = [*first.cacher.list(IP_ADDRESSES), *first.cacher.list(NODE_PORTS)]
    assert len(claims) == 80
    assert len({(claim.resource, claim.view(Claim).parent) for claim in claims}) == 80


def test_a_stale_server_decides_by_the_current_state() -> None:
    first = Stage()
    first.namespace("ns")
    second = Stage(log=first.log)
    assert first.send("POST", SERVICES, service("a", clusterIP="10.96.0.9")).code == 201
    refused = second.send("POST", SERVICES, service("b", clusterIP="10.96.0.9"))
    assert "failed to allocate IP 10.96.0.9: provided IP is already allocated" in refused.message
    assert first.send("DELETE", f"{SERVICES}/a").code == 200
    assert second.send("POST", SERVICES, service("b", clusterIP="10.96.0.9")).code == 201


def test_a_service_releases_its_claims_with_its_last_finalizer() -> None:
    stage = Stage()
    stage.namespace("ns")
    body = service("a", type="NodePort")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    address, port = held(stage.send("POST", SERVICES, body))
    assert stage.send("DELETE", f"{SERVICES}/a").code == 200
    assert [claim.name for claim in stage.cacher.list(IP_ADDRESSES)] == [address]
    merge = "application/merge-patch+json"
    stage.send("PATCH", f"{SERVICES}/a", {"metadata": {"finalizers": None}}, media_type=merge)
    assert not stage.cacher.list(IP_ADDRESSES)
    assert not stage.cacher.list(NODE_PORTS)
    assert port


def test_deleting_a_collection_releases_everything() -> None:
    stage = Stage()
    stage.namespace("ns")
    for name in "abc":
        stage.send("POST", SERVICES, service(name, type="NodePort"))
    assert stage.send("DELETE", SERVICES).code == 200
    assert not stage.cacher.list(IP_ADDRESSES)
    assert not stage.cacher.list(NODE_PORTS)

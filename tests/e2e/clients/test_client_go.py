"""Tests of requests that client-go controllers send, including kube-controller-manager: leases, Events, informers.

The client writes protobuf and prefers protobuf responses, but also accepts JSON.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import python_client as make
from tests.e2e.clients.client_go import TYPED, ClientGo, metadata
from tests.e2e.clients.reflector import END_OF_STATE, STATE_FIRST
from tests.e2e.serving import Server


@pytest.fixture
def client(server: Server) -> Iterator[ClientGo]:
    with ClientGo(server) as client:
        yield client


def lease_of(holder: str, renewed: str, transitions: int = 0) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": transitions}
    spec |= {"acquireTime": "2026-01-02T03:04:05.000001Z", "renewTime": f"2026-01-02T03:04:{renewed}Z"}
    return make.manifest("coordination.k8s.io/v1", "Lease", "leader", spec=spec)


def test_one_of_two_clients_acquires_the_lease(client: ClientGo, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    assert client.get(f"{path}/leader").code == 404
    created = client.write("POST", path, lease_of("first", "05.000001"))
    assert created.code == 201
    assert created.body["spec"]["renewTime"] == "2026-01-02T03:04:05.000001Z"
    assert client.write("POST", path, lease_of("second", "06.000000")).body["reason"] == "AlreadyExists"
    version = {"resourceVersion": created.body["metadata"]["resourceVersion"]}
    renewed, stolen = lease_of("first", "07.250000"), lease_of("second", "07.500000", 1)
    for each in (renewed, stolen):
        each["metadata"] |= version
    assert client.write("PUT", f"{path}/leader", renewed).code == 200
    lost = client.write("PUT", f"{path}/leader", stolen)
    assert (lost.code, lost.body["reason"]) == (409, "Conflict")
    assert client.get(f"{path}/leader").body["spec"]["holderIdentity"] == "first"


def test_an_event_is_created_and_then_counted(client: ClientGo, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/events"
    event = make.manifest("v1", "Event", "leader.17", reason="LeaderElection", message="first became leader", count=1)
    event["involvedObject"] = {"kind": "Lease", "name": "leader", "namespace": namespace}
    event |= {"source": {"component": "kube-controller-manager"}, "type": "Normal"}
    event |= dict.fromkeys(("firstTimestamp", "lastTimestamp"), "2026-01-02T03:04:05Z")
    assert client.write("POST", path, event).code == 201
    counted = client.patch(f"{path}/leader.17", {"count": 2, "lastTimestamp": "2026-01-02T03:05:05Z"})
    assert (counted.code, counted.body["count"], counted.body["message"]) == (200, 2, "first became leader")
    selector = {"fieldSelector": "involvedObject.name=leader,source=kube-controller-manager"}
    assert len(client.get(path, selector).body["items"]) == 1


@pytest.mark.parametrize(
    ("accept", "kind", "version"),
    [(TYPED, "ConfigMap", "v1"), (metadata(""), "PartialObjectMetadata", "meta.k8s.io/v1")],
    ids=["typed", "metadata"],
)
def test_a_stream_begins_with_the_state_and_a_bookmark(
    client: ClientGo, namespace: str, accept: str, kind: str, version: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    written = [client.write("POST", path, make.config_map(name)).body["metadata"] for name in "ba"]
    with client.watch(path, {**STATE_FIRST, "labelSelector": "app=web"}, accept) as events:
        first, second, mark = itertools.islice(events, 3)
    assert [each["type"] for each in (first, second, mark)] == ["ADDED", "ADDED", "BOOKMARK"]
    assert [each["object"]["metadata"]["name"] for each in (first, second)] == ["a", "b"]
    assert {(each["object"]["kind"], each["object"]["apiVersion"]) for each in (first, second, mark)} == {
        (kind, version)
    }
    assert mark["object"]["metadata"]["annotations"] == {END_OF_STATE: "true"}
    assert int(mark["object"]["metadata"]["resourceVersion"]) >= int(written[1]["resourceVersion"])


def test_a_deletion_has_a_uid_precondition(client: ClientGo, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    created = client.write("POST", path, make.service("web")).body

    def delete(uid: str) -> tuple[int, str]:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        code, body = client.write("DELETE", f"{path}/web", options)
        return code, body["kind"]

    assert delete("00000000-0000-0000-0000-000000000000") == (409, "Status")
    assert delete(created["metadata"]["uid"]) == (200, "Service")
    assert client.get(f"{path}/web").code == 404


STOPS_WITHIN = 10.0
"""Maximum duration of the stop in seconds; if the server waited for the client, the stop would take twenty seconds."""


@pytest.mark.slow
def test_idle_clients_do_not_delay_the_shutdown(tmp_path: Path) -> None:
    with closing(Server(tmp_path, "--database", f"sqlite:///{tmp_path / 'ctrlmgr.db'}")) as server:
        server.start()
        with ClientGo(server) as idle, ClientGo(server) as watching:
            assert idle.get("/api/v1/services").code == 200
            with watching.watch("/api/v1/services", {}) as events:
                assert next(events)["type"] == "ADDED"
                before = time.monotonic()
                server.stop()
                assert time.monotonic() - before < STOPS_WITHIN

"""Tests that a user with requests in all seats of a priority level delays only other users of the same level."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.robustness.histories.run import server_of
from tests.robustness.hostile.raw import ask, connect, head, receive
from tests.robustness.places import on_sqlite
from tests.robustness.serving import ConfiguredServer

MAPS = "/api/v1/namespaces/default/configmaps"
SEATS = 40
"""The number of seats of the server; about three of the seats belong to the level of ordinary users, which may borrow
more.
"""
ALICE: dict[str, str | None] = {"impersonate-user": "alice"}
BOB: dict[str, str | None] = {"impersonate-user": "bob"}
NODE: dict[str, str | None] = {"impersonate-user": "system:node:a", "impersonate-group": "system:nodes"}
NO_ONE: dict[str, str | None] = {}
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
BINDING = {
    "metadata": {"name": "users"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [
        *({"kind": "User", "name": name} for name in ("alice", "bob")),
        {"kind": "Group", "name": "system:nodes"},
    ],
}
FUTURE = f"{MAPS}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan"


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredServer]:
    """A server with few seats for requests."""
    settings = f"[server]\nmax_reads = {SEATS // 2}\nmax_writes = {SEATS // 2}\n"
    server = server_of(on_sqlite(tmp_path_factory.mktemp("crowded"), settings=settings))
    try:
        server.start()
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
        assert ask(server.site, "POST", BINDINGS, json.dumps(BINDING).encode()).code == 201
        yield server
        server.stop()
    finally:
        server.close()


def busy(stack: ExitStack, server: ConfiguredServer, count: int, request: bytes) -> list[ssl.SSLSocket]:
    """Begin requests that take long, and return their connections."""
    connections = [stack.enter_context(connect(server.site)) for _ in range(count)]
    for connection in connections:
        connection.sendall(request)
    return connections


def waiting(server: ConfiguredServer) -> int:
    """Return the number of requests of ordinary users that wait for a seat."""
    path = "/debug/api_priority_and_fairness/dump_priority_levels"
    (row,) = [line for line in ask(server.site, "GET", path).body.decode().splitlines() if "global-default" in line]
    return int(row.split(",")[4])


def test_a_withheld_body_occupies_no_seat(crowded: ConfiguredServer) -> None:
    body = b'{"metadata":{"generateName":"a-"}}'
    half = head(crowded.site, "POST", MAPS, {"content-length": str(len(body)), **ALICE}) + body[:10]
    with ExitStack() as stack:
        withheld = busy(stack, crowded, 2 * SEATS, half)
        for headers in (ALICE, BOB, NO_ONE):
            assert ask(crowded.site, "POST", MAPS, body, headers).code == 201
        for connection in withheld:
            connection.sendall(body[10:])
        assert {receive(connection).code for connection in withheld} == {201}


def test_requests_wait_behind_a_user_with_all_seats(crowded: ConfiguredServer) -> None:
    with ExitStack() as stack:
        lasting = busy(stack, crowded, 2 * SEATS, head(crowded.site, "GET", FUTURE, ALICE))
        watching = busy(stack, crowded, 5, head(crowded.site, "GET", f"{MAPS}?watch=true&timeoutSeconds=5", ALICE))
        assert any(waiting(crowded) for _ in range(500)), "alice has more requests than seats"
        assert ask(crowded.site, "GET", MAPS).code == 200, "administrators never wait"
        assert ask(crowded.site, "GET", MAPS, headers=NODE).code == 200, "nodes have seats of their own"
        for path in ("/livez", "/readyz", "/healthz"):
            assert ask(crowded.site, "GET", path, headers=ALICE).code == 200, path
        assert ask(crowded.site, "GET", MAPS, headers=BOB).code == 200, "bob's queue is next"
        assert waiting(crowded), "alice's requests still wait"
        assert {receive(connection).code for connection in lasting} <= {504, 429}
        assert {receive(connection).code for connection in watching} <= {200, 429}
    assert ask(crowded.site, "GET", MAPS, headers=ALICE).code == 200


def test_metrics_count_the_seats(crowded: ConfiguredServer) -> None:
    text = ask(crowded.site, "GET", "/metrics").body.decode()
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 0' in text
    level = 'flow_schema="global-default",priority_level="global-default"'
    found = [line for line in text.splitlines() if line.startswith("apiserver_flowcontrol_current_executing_requests")]
    assert any(line.endswith(" 0.0") and "global-default" in line for line in found), (level, found)

"""Tests of the limit of concurrent requests: further ones get a Retry-After, except those that keep the control plane
alive.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.robustness.histories.run import server_of
from tests.robustness.hostile.raw import ask, connect, head, receive
from tests.robustness.places import on_sqlite
from tests.robustness.serving import Served
from tests.robustness.statuses import is_status

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
READS, WRITES = 4, 2
ALICE: dict[str, str | None] = {"impersonate-user": "alice"}
BOB: dict[str, str | None] = {"impersonate-user": "bob"}
"""Users who are counted, as administrators are not."""
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
BINDING = {
    "metadata": {"name": "users"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "User", "name": name} for name in ("alice", "bob", "carol")],
}
FUTURE = f"{MAPS}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan"


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with few places."""
    settings = f"[server]\nmax_reads = {READS}\nmax_writes = {WRITES}\n"
    server = server_of(on_sqlite(tmp_path_factory.mktemp("crowded"), settings=settings))
    try:
        server.start()
        lease = {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "me"}}
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
        assert ask(server.site, "POST", BINDINGS, json.dumps(BINDING).encode()).code == 201
        assert ask(server.site, "POST", LEASES, json.dumps(lease).encode()).code == 201
        yield server
        server.stop()
    finally:
        server.close()


def busy(stack: ExitStack, server: Served, count: int, request: bytes) -> list[ssl.SSLSocket]:
    """Begin requests that last, and return their connections."""
    connections = [stack.enter_context(connect(server.site)) for _ in range(count)]
    for connection in connections:
        connection.sendall(request)
    return connections


def is_refused(server: Served, method: str, path: str, headers: dict[str, str | None]) -> bool:
    """Ask until the places are taken, which nobody tells us, and look at the refusal."""
    for _ in range(200):
        reply = ask(server.site, method, path, headers=headers)
        if reply.code == 429:
            told = (reply.headers["retry-after"], reply.fields["reason"], reply.fields["details"]["retryAfterSeconds"])
            return is_status(reply) and told == ("1", "TooManyRequests", 1)
    return False


def test_a_body_that_is_withheld_takes_no_place(crowded: Served) -> None:
    body = b'{"metadata":{"generateName":"a-"}}'
    half = head(crowded.site, "POST", MAPS, {"content-length": str(len(body)), **ALICE}) + body[:10]
    with ExitStack() as stack:
        waiting = busy(stack, crowded, 10 * WRITES, half)
        no_one: dict[str, str | None] = {}
        for headers in (ALICE, BOB, no_one):
            assert ask(crowded.site, "POST", MAPS, body, headers).code == 201
        for connection in waiting:
            connection.sendall(body[10:])
        codes = [receive(connection).code for connection in waiting]
    assert set(codes) <= {201, 429}
    assert 201 in codes


def test_one_user_takes_half_the_places_and_all_users_all_of_them(crowded: Served) -> None:
    with ExitStack() as stack:
        lasting = head(crowded.site, "GET", f"{MAPS}?watch=true&timeoutSeconds=5", ALICE)
        watching = busy(stack, crowded, 2 * READS, lasting)
        waiting = busy(stack, crowded, READS // 2, head(crowded.site, "GET", FUTURE, ALICE))
        assert is_refused(crowded, "GET", MAPS, ALICE)
        assert ask(crowded.site, "GET", MAPS, headers=BOB).code == 200
        waiting += busy(stack, crowded, READS // 2, head(crowded.site, "GET", FUTURE, BOB))
        assert is_refused(crowded, "GET", MAPS, {"impersonate-user": "carol"})
        assert ask(crowded.site, "GET", MAPS).code == 200, "administrators are not counted"
        for path in ("/livez", "/readyz", "/healthz", "/version", f"{LEASES}/leader"):
            assert ask(crowded.site, "GET", path, headers=ALICE).code == 200, path
        update = ask(crowded.site, "GET", f"{LEASES}/leader")
        assert ask(crowded.site, "PUT", f"{LEASES}/leader", update.body, ALICE).code == 200
        assert [receive(connection).code for connection in waiting] == [504] * READS
        assert [receive(connection).code for connection in watching] == [200] * 2 * READS
    assert ask(crowded.site, "GET", MAPS, headers=ALICE).code == 200


def test_the_places_are_told_in_the_metrics(crowded: Served) -> None:
    text = ask(crowded.site, "GET", "/metrics").body.decode()
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 0' in text

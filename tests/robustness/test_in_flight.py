"""So many at a time and no more: the rest are told when to come back, but for what keeps the others going."""

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
READS, WRITES = 3, 2
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


def is_refused(server: Served, method: str, path: str, body: bytes = b"") -> bool:
    """Ask until the places are taken, which nobody tells us, and look at the refusal."""
    for _ in range(200):
        reply = ask(server.site, method, path, body)
        if reply.code == 429:
            told = (reply.headers["retry-after"], reply.fields["reason"], reply.fields["details"]["retryAfterSeconds"])
            return is_status(reply) and told == ("1", "TooManyRequests", 1)
    return False


def test_writes_beyond_the_limit_come_back_later(crowded: Served) -> None:
    body = b'{"metadata":{"generateName":"a-"}}'
    half = head(crowded.site, "POST", MAPS, {"content-length": str(len(body))}) + body[:10]
    with ExitStack() as stack:
        waiting = busy(stack, crowded, WRITES, half)
        assert is_refused(crowded, "POST", MAPS, body)
        assert is_refused(crowded, "DELETE", f"{MAPS}/none")
        update = ask(crowded.site, "GET", f"{LEASES}/leader")
        assert ask(crowded.site, "PUT", f"{LEASES}/leader", update.body).code == 200
        assert ask(crowded.site, "GET", MAPS).code == 200
        assert ask(crowded.site, "GET", "/readyz").code == 200
        for connection in waiting:
            connection.sendall(body[10:])
        assert [receive(connection).code for connection in waiting] == [201] * WRITES
    assert ask(crowded.site, "POST", MAPS, body).code == 201


def test_reads_beyond_the_limit_come_back_later(crowded: Served) -> None:
    with ExitStack() as stack:
        watching = busy(stack, crowded, 2 * READS, head(crowded.site, "GET", f"{MAPS}?watch=true&timeoutSeconds=5"))
        waiting = busy(stack, crowded, READS, head(crowded.site, "GET", FUTURE))
        assert is_refused(crowded, "GET", MAPS)
        for path in ("/livez", "/readyz", "/healthz", "/version", f"{LEASES}/leader"):
            assert ask(crowded.site, "GET", path).code == 200, path
        update = ask(crowded.site, "GET", f"{LEASES}/leader")
        assert ask(crowded.site, "PUT", f"{LEASES}/leader", update.body).code == 200
        assert [receive(connection).code for connection in waiting] == [504] * READS
        assert [receive(connection).code for connection in watching] == [200] * 2 * READS
    assert ask(crowded.site, "GET", MAPS).code == 200


def test_the_places_are_told_in_the_metrics(crowded: Served) -> None:
    text = ask(crowded.site, "GET", "/metrics").body.decode()
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 0' in text

"""Tests of logs and watches as WebSocket messages, as browsers receive them; the client is websocket-client."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
import websocket

from tests.e2e.clients.websocket_client import connected, messages
from tests.e2e.kubelet.small_kubelet import SmallKubelet
from tests.e2e.serving import Server, until

TEXT, BINARY = websocket.ABNF.OPCODE_TEXT, websocket.ABNF.OPCODE_BINARY


@pytest.mark.parametrize(
    ("protocols", "chosen", "kind"),
    [
        ((), None, BINARY),
        (("binary.k8s.io",), "binary.k8s.io", BINARY),
        (("other", "base64.binary.k8s.io"), "base64.binary.k8s.io", TEXT),
    ],
)
def test_a_log_is_sent_in_messages(
    server: Server,
    kubelet: SmallKubelet,
    namespace: str,
    protocols: tuple[str, ...],
    chosen: str | None,
    kind: int,
) -> None:
    kubelet.log = b"line\n" * 100_000
    path = f"/api/v1/namespaces/{namespace}/pods/real/log?follow=true"
    with connected(server, path, *protocols) as client:
        assert client.getsubprotocol() == chosen
        received = list(messages(client))
    assert received[0] == (kind, b"")
    assert {each for each, _ in received} == {kind}
    pieces = [base64.b64decode(data) if kind == TEXT else data for _, data in received]
    assert b"".join(pieces) == kubelet.log + b"followed 0\nfollowed 1\nfollowed 2\n"


def test_another_protocol_of_a_log_is_refused(server: Server, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/real/log"
    with (
        pytest.raises(websocket.WebSocketBadStatusException, match="403 Forbidden"),
        connected(server, path, "channel.k8s.io"),
    ):
        pass


def test_errors_before_a_log_are_http_responses(server: Server, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/absent/log"
    with pytest.raises(websocket.WebSocketBadStatusException, match="404 Not Found"), connected(server, path):
        pass


def test_a_watch_sends_one_message_for_each_event(server: Server, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(3):
        server.create(path, {"metadata": {"name": f"before-{number}"}})
    with connected(server, f"{path}?watch=true&timeoutSeconds=2") as client:

        def event() -> Any:
            kind, data = client.recv_data()
            assert kind == TEXT
            return json.loads(data)

        names = {event()["object"]["metadata"]["name"] for _ in range(4)}
        assert names == {"before-0", "before-1", "before-2", "kube-root-ca.crt"}
        server.create(path, {"metadata": {"name": "after"}})
        seen = event()
        assert (seen["type"], seen["object"]["metadata"]["name"]) == ("ADDED", "after")
        assert list(messages(client)) == []


def watches(server: Server) -> float:
    """Return the number of ConfigMap watches that are open."""
    _, text = server.request("GET", "/metrics")
    found = re.findall(r'(?m)^apiserver_longrunning_requests{.*resource="configmaps".*} ([0-9.]+)$', text)
    return sum(map(float, found))


def test_a_client_that_closes_ends_its_watch(server: Server, namespace: str) -> None:
    before = watches(server)
    with connected(server, f"/api/v1/namespaces/{namespace}/configmaps?watch=true") as client:
        client.recv_data()
        assert watches(server) == before + 1
    until(lambda: watches(server) == before)


def test_a_browser_sends_its_token_as_a_protocol(server: Server, kubelet: SmallKubelet, namespace: str) -> None:
    token = base64.urlsafe_b64encode(server.token.encode()).decode().rstrip("=")
    kubelet.log = b"for a browser\n"
    path = f"/api/v1/namespaces/{namespace}/pods/real/log"
    with connected(server, path, "binary.k8s.io", token=token) as client:
        assert client.getsubprotocol() == "binary.k8s.io"
        assert b"".join(data for _, data in messages(client)) == b"for a browser\n"


def test_the_token_does_not_reach_the_kubelet(server: Server, kubelet: SmallKubelet, namespace: str) -> None:
    token = base64.urlsafe_b64encode(server.token.encode()).decode().rstrip("=")
    path = f"/api/v1/namespaces/{namespace}/pods/real/exec?command=echo&command=hello&stdout=true"
    with connected(server, path, "v4.channel.k8s.io", token=token) as client:
        assert b"hello" in b"".join(data for _, data in messages(client))
    assert kubelet.headers[-1][b"sec-websocket-protocol"] == b"v4.channel.k8s.io"

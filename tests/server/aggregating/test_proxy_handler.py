"""Tests of requests for the API versions of an extension server that responds, hangs, crashes, redirects, or is
replaced.
"""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest

from ctrlmgr.tracing import spans
from tests.server.aggregating.extension import Extension, answer, certificate_for
from tests.server.aggregating.registering import register
from tests.server.site import Site
from tests.tracing.memory_tracer import MemoryTracer

THINGS = "/apis/ext.example/v1/namespaces/x/things"


def test_the_server_receives_the_user_and_the_certificate_of_the_front_proxy(site: Site, ext: Extension) -> None:
    forged = {"X-Remote-User": "forged", "X-Remote-Extra-A": "b", "Authorization": "Bearer secret", "X-Mine": "1"}
    said = site.ask(f"{THINGS}?b=2&a=1%20x", headers=forged)
    assert said.status == 200
    first, *lines = said.json
    assert first == f"GET {THINGS}?a=1+x&b=2 HTTP/1.1"
    named = [line for line in lines if line.lower().startswith("x-remote-user")]
    assert len(named) == 1
    assert "forged" not in named[0]
    assert not [line for line in lines if line.lower().startswith(("authorization", "x-remote-extra-a"))]
    assert "x-mine: 1" in lines
    assert f"x-forwarded-uri: {THINGS}" in lines
    assert f"audit-id: {said.headers['audit-id']}" in lines
    assert ext.shown[-1] == "front-proxy-client"


def test_the_trace_of_the_request_is_passed_on(site: Site, ext: Extension) -> None:
    tracer = MemoryTracer()
    with spans.installed(tracer):
        said = site.ask(THINGS, headers={"Traceparent": f"00-{'1' * 32}-{'2' * 16}-01"})
    (span,) = tracer.spans
    assert [line for line in said.json[1:] if line.startswith("traceparent")] == [f"traceparent: {span.context}"]


def test_a_body_and_a_refusal_are_passed_on_unchanged(site: Site, ext: Extension) -> None:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
        body = await reader.readexactly(length)
        writer.write(answer("409 Conflict", body, "content-type: application/json", 'warning: 299 - "from ext"'))
        return True

    ext.behaviour = behave
    said = site.ask(THINGS, "POST", {"kind": "Thing", "big": "x" * 1_000_000})
    assert (said.status, len(said.json["big"]), said.headers["warning"]) == (409, 1_000_000, '299 - "from ext"')


def test_an_unavailable_version_is_refused_without_a_request(site: Site, ext: Extension) -> None:
    path = register(site, "v2", ext, ext.ca, available=False)
    said = site.ask(path)
    assert (said.status, said.body, said.headers["content-type"]) == (
        503,
        "service unavailable\n",
        "text/plain; charset=utf-8",
    )
    assert not [head for head in ext.heads if path in head]


def test_a_server_with_another_certificate_is_refused(site: Site, ext: Extension, tmp_path: Path) -> None:
    other, _ = certificate_for("other.example", tmp_path)
    said = site.ask(register(site, "v3", ext, other))
    assert said.status == 503
    assert said.body.startswith("error trying to reach service: tls: failed to verify certificate: x509:")
    assert site.ask(register(site, "v4", ext, b"", insecureSkipTLSVerify=True)).status == 200


def test_an_invalid_authority_is_an_error_of_the_request(site: Site, ext: Extension) -> None:
    said = site.ask(register(site, "v5", ext, b"no certificate"))
    assert (said.status, said.body) == (
        500,
        "unable to load root certificates: unable to parse bytes as PEM block\n",
    )


def test_a_server_that_closes_without_a_response_is_unreachable(site: Site, ext: Extension) -> None:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        return False

    ext.behaviour = behave
    said = site.ask(THINGS)
    assert (said.status, said.body) == (503, "error trying to reach service: EOF\n")


def test_a_redirect_is_not_passed_on(site: Site, ext: Extension) -> None:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer("307 Temporary Redirect", b"", "location: https://elsewhere.example/"))
        return True

    ext.behaviour = behave
    said = site.ask(THINGS)
    assert (said.status, said.body) == (
        502,
        "the backend attempted to redirect this request, which is not permitted",
    )


def test_a_hanging_server_delays_no_other_request(site: Site, ext: Extension) -> None:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.read()
        return False

    ext.behaviour = behave
    with socket.create_connection(("127.0.0.1", int(site.url.rpartition(":")[2]))) as waiting:
        waiting.sendall(f"GET {THINGS} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert site.ask("/api/v1/namespaces/default").status == 200
        waiting.settimeout(0.1)
        with pytest.raises(TimeoutError):
            waiting.recv(1)


def test_a_watch_is_passed_on_piece_by_piece(site: Site, ext: Extension) -> None:
    more, ended = asyncio.Event(), []

    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nfirst\n\r\n")
        await writer.drain()
        ended.append(await reader.read())
        more.set()
        return False

    ext.behaviour = behave
    with socket.create_connection(("127.0.0.1", int(site.url.rpartition(":")[2]))) as watching:
        watching.sendall(f"GET {THINGS}?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        received = b""
        while b"first\n" not in received:
            received += watching.recv(65_536)
        assert ended == []
    while not ended:  # the client has disconnected, and the server detects it
        site.ask("/api/v1/namespaces/default")
    assert ended == [b""]


def test_an_upgrade_is_passed_on(site: Site, ext: Extension) -> None:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n")
        writer.write((await reader.readexactly(4)).upper())
        return False

    ext.behaviour = behave
    with socket.create_connection(("127.0.0.1", int(site.url.rpartition(":")[2]))) as client:
        protocols = "base64url.bearer.authorization.k8s.io.x, v4"
        lines = f"connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-protocol: {protocols}"
        client.sendall(f"GET {THINGS}/a/exec HTTP/1.1\r\nhost: x\r\n{lines}\r\n\r\nping".encode())
        received = b""
        while data := client.recv(65_536):
            received += data
    assert received.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert received.endswith(b"\r\n\r\nPING")
    assert "x-remote-user: " in ext.heads[-1]
    assert "sec-websocket-protocol: v4\r\n" in ext.heads[-1]


def test_an_upgrade_that_the_server_ignores_is_refused(site: Site) -> None:
    said = site.ask(THINGS, headers={"Connection": "Upgrade", "Upgrade": "websocket"})
    assert (said.status, said.body) == (503, "invalid upgrade response: status code 200\n")


def test_a_local_version_and_its_group_are_served_here(site: Site) -> None:
    assert site.ask("/apis/ext.example/v9/things").body == "404 page not found\n"
    assert json.loads(site.ask("/apis/ext.example").body)["name"] == "ext.example"

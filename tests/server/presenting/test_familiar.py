"""Requests whose header lines have been read before: the same to the application, and never mistaken for others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.server.http.front import KEEP_ALIVE
from ctrlmgr.server.http.protocol import HEAD_TIMEOUT, LINGER
from ctrlmgr.server.presenting import familiar
from tests.server.http.test_protocol import OK, Client

LINES = b"\r\nHost: x\r\nAuthorization: Bearer t\r\nX-Two: a\r\nx-two: b\r\nConnection: keep-alive\r\n\r\n"


@pytest.fixture(autouse=True)
def strangers() -> None:
    familiar._known.clear()


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.protocol.connection_lost(None)
    assert all(timer.cancelled or timer.when <= client.loop.now + LINGER for timer in client.loop.timers)


def parsed(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Note what the parser is given from now on."""
    given: list[bytes] = []

    class Parser:
        def __init__(self, parser: Any) -> None:
            self._parser = parser

        def feed_data(self, data: bytes) -> None:
            given.append(data)
            self._parser.feed_data(data)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._parser, name)

    monkeypatch.setattr(client.protocol, "parser", Parser(client.protocol.parser))
    return given


TARGETS = [
    b"/api/v1/namespaces/n/pods/p",
    b"/api/v1/pods?watch=true&labelSelector=a%3Db",
    b"/api/v1/pods?",
    b"/api/v1/pods?fieldSelector=metadata.name=a?b/c",
    b"/a%2Fb/%C3%A4",
]


@pytest.mark.parametrize("target", TARGETS)
def test_the_application_sees_what_the_parser_would_have_told_it(
    client: Client, target: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    client.send(b"GET " + target + b" HTTP/1.1" + LINES)
    given = parsed(client, monkeypatch)
    client.send(b"GET " + target + b" HTTP/1.1" + LINES)
    assert given == []
    first, second = client.scopes[1:]
    assert second == first
    assert client.said == [OK] * 3


@pytest.mark.parametrize(
    "request_",
    [
        b"GET //evil/ HTTP/1.1" + LINES,
        b"GET /a#b HTTP/1.1" + LINES,
        b"GET /\xc3\xa4 HTTP/1.1" + LINES,
        b"GET http://x/a HTTP/1.1" + LINES,
        b"GET /a HTTP/1.0" + LINES,
        b"GET  /a HTTP/1.1" + LINES,
        b"HEAD /a HTTP/1.1" + LINES,
        b"GET /a HTTP/1.1" + LINES + b"GET /b HTTP/1.1" + LINES,
        b"GET /a HTTP/1.1" + LINES.replace(b"Bearer t", b"Bearer u"),
        b"\r\nGET /a HTTP/1.1" + LINES,
    ],
)
def test_all_else_is_the_parsers(client: Client, request_: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        client.send(b"GET / HTTP/1.1" + LINES)
    given = parsed(client, monkeypatch)
    client.send(request_)
    assert given == [request_]


@pytest.mark.parametrize(
    "line",
    [
        b"Content-Length: 0",
        b"Transfer-Encoding: chunked",
        b"Expect: 100-continue",
        b"Upgrade: h2c",
        b"Connection: close",
        b"Connection: upgrade",
        b"X: " + b"x" * familiar.LONGEST,
    ],
)
def test_lines_that_say_more_are_not_remembered(client: Client, line: bytes) -> None:
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n" + line + b"\r\n\r\n")
    assert not any(line in lines for lines in familiar._known)


def test_lines_are_remembered_of_so_many_clients(client: Client) -> None:
    for number in range(3 * familiar.REMEMBERED):
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\nx: %d\r\n\r\n" % number)
    assert 0 < len(familiar._known) <= familiar.REMEMBERED


def test_what_follows_half_a_request_belongs_to_it(client: Client) -> None:
    for _ in range(2):
        client.send(b"GET / HTTP/1.1" + LINES)
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\nx: ")
    client.send(b"GET /hidden HTTP/1.1" + LINES)
    assert [scope["path"] for scope in client.scopes] == ["/", "/"]


def test_what_comes_before_the_answer_waits_for_it(client: Client) -> None:
    for _ in range(2):
        client.send(b"GET / HTTP/1.1" + LINES)
    client.send(b"GET /slow HTTP/1.1" + LINES)
    client.send(b"GET /next HTTP/1.1" + LINES)
    assert [scope["path"] for scope in client.scopes] == ["/", "/", "/slow"]
    for _ in range(3):
        client.loop.go_on()
    assert [scope["path"] for scope in client.scopes] == ["/", "/", "/slow", "/next"]
    assert client.transport.written.rstrip().endswith(b"/next")


def test_a_familiar_client_may_be_idle_as_long_as_any(client: Client) -> None:
    for _ in range(3):
        client.send(b"GET / HTTP/1.1" + LINES)
        client.loop.pass_time(KEEP_ALIVE - 1)
    assert not client.transport.is_closing()
    client.loop.pass_time(2)
    assert client.transport.closed


def test_blank_lines_before_a_familiar_request_do_not_end_it(client: Client) -> None:
    for _ in range(2):
        client.send(b"GET / HTTP/1.1" + LINES)
    client.send(b"\r\n")
    client.send(b"GET / HTTP/1.1" + LINES)
    client.loop.pass_time(HEAD_TIMEOUT + 1)
    assert (client.transport.is_closing(), client.said) == (False, [OK] * 3)


def test_a_server_that_stops_says_so_to_the_familiar_too(client: Client) -> None:
    for _ in range(2):
        client.send(b"GET /whole HTTP/1.1" + LINES)
    client.protocol.leave()
    client.send(b"GET /whole HTTP/1.1" + LINES)
    assert client.transport.written.count(b"connection: close") == 1
    assert client.transport.closed

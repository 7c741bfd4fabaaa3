"""Tests of hostile connections: endless headers, ambiguous content-lengths, silent clients, random bytes."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ctrlmgr.http.size_limits import DEFAULT
from tests.robustness.conftest import HOSTILE
from tests.robustness.hostile.raw import PATIENCE, Reply, ask, connect, exchange, head, receive
from tests.robustness.serving import ConfiguredServer

MAPS = f"/api/v1/namespaces/{HOSTILE}/configmaps"


def headers_of(total: int, count: int = 100) -> dict[str, str | None]:
    """Return request headers with about this number of bytes."""
    return {f"x-{number:03d}": "a" * (total // count - 9) for number in range(count)}


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_headers_above_a_mebibyte_are_refused(target: ConfiguredServer, count: int) -> None:
    reply = exchange(target.site, [head(target.site, "GET", "/version", headers_of(1_100_000, count))])
    assert reply.code == 431
    assert reply.headers["connection"] == "close"


def test_a_path_above_a_mebibyte_is_refused(target: ConfiguredServer) -> None:
    assert exchange(target.site, [head(target.site, "GET", "/" + "a" * 1_100_000)]).code == 431


def test_endless_headers_are_refused_while_they_arrive(target: ConfiguredServer) -> None:
    def endless() -> Iterator[bytes]:
        yield b"GET /version HTTP/1.1\r\nhost: x\r\n"
        for number in range(3000):
            yield b"x-%d: " % number + b"a" * 1000 + b"\r\n"

    assert exchange(target.site, endless()).code == 431


def test_headers_of_nearly_a_mebibyte_are_read(target: ConfiguredServer) -> None:
    assert ask(target.site, "GET", "/version", headers=headers_of(DEFAULT.head_bytes - 5000)).code == 200


def request(*lines: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join([b"POST /version HTTP/1.1", b"host: x", *lines, b"", body])


AMBIGUOUS = {
    "a length and chunks": request(b"content-length: 5", b"transfer-encoding: chunked", body=b"0\r\n\r\nGET /"),
    "two lengths": request(b"content-length: 5", b"content-length: 6", body=b"aaaaaa"),
    "a list of lengths": request(b"content-length: 5, 5", body=b"aaaaa"),
    "a negative length": request(b"content-length: -1"),
    "a length in hexadecimal": request(b"content-length: 0x5", body=b"aaaaa"),
    "a length with a sign": request(b"content-length: +5", body=b"aaaaa"),
    "a length beyond all": request(b"content-length: 99999999999999999999"),
    "a chunk of no size": request(b"transfer-encoding: chunked", body=b"zz\r\naaaa\r\n"),
    "a chunk of a negative size": request(b"transfer-encoding: chunked", body=b"-5\r\naaaa\r\n"),
    "a chunk beyond all": request(b"transfer-encoding: chunked", body=b"fffffffffffffffff\r\n"),
    "a space before the colon": request(b"content-length : 5", body=b"aaaaa"),
    "a header without a name": request(b": a"),
    "a header without a colon": request(b"nonsense"),
    "a NUL in a header": request(b"x-a: b\x00c"),
    "a bare return in a header": request(b"x-a: b\rc: d"),
    "a folded header": request(b"x-a: b", b" c: d"),
    "no request": b"\x00\x01\x02\x03" * 100,
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an unknown version": b"GET /version HTTP/9.9\r\n\r\n",
    "two hosts": b"GET /version HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
    "no host": b"GET /version HTTP/1.1\r\n\r\n",
    "chunks twice": request(b"transfer-encoding: chunked, chunked", body=b"0\r\n\r\n"),
    "a line that ends in a feed alone": b"GET /version HTTP/1.1\nhost: x\n\n",
    "a target that is none": b"GET http://[::1 HTTP/1.1\r\nhost: x\r\n\r\n",
    "a target with bytes beyond ASCII": b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_requests_are_refused(target: ConfiguredServer, name: str) -> None:
    reply = exchange(target.site, [AMBIGUOUS[name]])
    assert reply.code == 400, reply
    assert reply.headers["connection"] == "close"


@pytest.mark.parametrize("coding", [b"xchunked", b"gzip, chunked"])
def test_a_body_with_an_unknown_transfer_encoding_is_refused(target: ConfiguredServer, coding: bytes) -> None:
    reply = exchange(target.site, [request(b"transfer-encoding: " + coding, body=b"0\r\n\r\n")])
    assert (reply.code, reply.headers["connection"]) == (501, "close")


def test_input_without_tls_gets_no_response(target: ConfiguredServer) -> None:
    for noise in (
        b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n",
        b"\x16\x03\x01\xff\xff" + b"\x00" * 1000,
        b"\x00" * 10_000,
    ):
        with socket.create_connection((target.site.host, target.site.port), timeout=PATIENCE) as plain:
            plain.sendall(noise)
            try:
                assert not plain.recv(65_536).startswith(b"HTTP/")
            except ConnectionResetError:
                continue


def test_an_unsupported_upgrade_is_ignored(target: ConfiguredServer) -> None:
    for protocol in ("websocket", "h2c", "SPDY/3.1"):
        reply = ask(target.site, "GET", "/version", headers={"connection": "Upgrade", "upgrade": protocol})
        assert reply.code == 200


def test_a_refused_request_gets_no_100_continue(target: ConfiguredServer) -> None:
    large = {"expect": "100-continue", "content-length": str(10_000_000)}
    refused = exchange(target.site, [head(target.site, "POST", MAPS, large)])
    assert (refused.code, refused.headers["connection"]) == (413, "close")


def test_an_accepted_request_gets_100_continue(target: ConfiguredServer) -> None:
    body = b'{"metadata":{"generateName":"asked-"}}'
    asking = head(target.site, "POST", MAPS, {"expect": "100-continue", "content-length": str(len(body))})
    with connect(target.site) as connection:
        connection.sendall(asking)
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert receive(connection).code == 201
        connection.sendall(head(target.site, "GET", "/version"))
        assert receive(connection).code == 200


def test_pipelined_requests_are_answered_in_order(target: ConfiguredServer) -> None:
    one = head(target.site, "GET", "/version", {"content-length": "0"})
    other = head(target.site, "GET", "/nowhere", {"content-length": "0"})
    with connect(target.site) as connection:
        connection.sendall((one + other) * 100)
        assert [receive(connection).code for _ in range(200)] == [200, 404] * 100


SMUGGLED = b"DELETE /api/v1/namespaces/%b/configmaps/kept HTTP/1.1\r\nhost: x\r\n%b\r\n\r\n"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"content-length": "4", "transfer-encoding": "chunked"}, b"0\r\n\r\n"),
        ({"transfer-encoding": "chunked", "content-length": "0"}, b"0\r\n\r\n"),
        ({"transfer-encoding": "identity, chunked", "content-length": "0"}, b""),
        ({"transfer-encoding": "\x0bchunked", "content-length": "0"}, b""),
        ({"transfer-encoding": "chunked"}, b"0;\n\r\n"),
        ({"transfer-encoding": "chunked"}, b"1\r\naa\r\n"),
        ({"transfer-encoding": "chunked"}, b"ffffffffffffffff1\r\n"),
        ({"content-length": "0, 0"}, b""),
        ({"content-length ": "0"}, b""),
        ({"connection": "upgrade", "upgrade": "h2c"}, b""),
        ({"connection": "close"}, b""),
    ],
)
def test_nothing_is_smuggled_behind_a_request(
    target: ConfiguredServer, headers: dict[str, str | None], body: bytes
) -> None:
    if target.request("GET", f"{MAPS}/kept")[0] == 404:
        assert target.request("POST", MAPS, {"metadata": {"name": "kept"}})[0] == 201
    hidden = SMUGGLED % (HOSTILE.encode(), f"authorization: Bearer {target.site.token}".encode())
    reply = exchange(target.site, [head(target.site, "GET", "/version", headers) + body + hidden])
    assert (reply.code, reply.headers["connection"]) in ((200, "close"), (400, "close"))
    assert target.request("GET", f"{MAPS}/kept")[0] == 200


def test_malformed_input_does_not_interrupt_a_response(target: ConfiguredServer) -> None:
    with connect(target.site) as connection:
        connection.sendall(head(target.site, "GET", f"{MAPS}?watch=true&timeoutSeconds=1"))
        connection.sendall(b"\x00\x01\x02" * 100)
        watched, refused = receive(connection), receive(connection)
    assert (watched.code, refused.code, refused.body) == (200, 400, b"400 Bad Request")
    assert [json.loads(line)["type"] for line in watched.body.splitlines()] == ["ADDED"] * watched.body.count(b"\n")


def test_a_connection_with_a_refused_body_can_be_reused(target: ConfiguredServer) -> None:
    with connect(target.site) as connection:
        connection.sendall(head(target.site, "POST", MAPS, {"content-length": "4000000"}))
        assert receive(connection).code == 413
        for _ in range(4):
            connection.sendall(b" " * 1_000_000)
        connection.sendall(head(target.site, "GET", "/version"))
        assert receive(connection).code == 200


def test_blank_lines_before_a_request_are_skipped(target: ConfiguredServer) -> None:
    assert exchange(target.site, [b"\r\n\r\n", head(target.site, "GET", "/version")]).code == 200


def test_many_silent_clients_do_not_block_others(target: ConfiguredServer) -> None:
    with ExitStack() as stack:
        for number in range(150):
            plain = socket.create_connection((target.site.host, target.site.port), timeout=PATIENCE)
            stack.enter_context(plain)
            if number % 3 == 1:
                plain.sendall(b"\x16\x03\x01")  # the beginning of a handshake
        for _ in range(30):
            half = stack.enter_context(connect(target.site))
            half.sendall(b"GET /version HTTP/1.1\r\nhost:")
        assert ask(target.site, "GET", MAPS).code == 200


def test_an_incomplete_body_is_discarded(target: ConfiguredServer) -> None:
    for _ in range(20):
        with connect(target.site) as connection:
            connection.sendall(head(target.site, "POST", MAPS, {"content-length": "1000"}) + b'{"metadata":')
    assert ask(target.site, "GET", MAPS).code == 200


def test_an_early_response_arrives_while_the_client_still_sends(target: ConfiguredServer) -> None:
    def all_of_it() -> Iterator[bytes]:
        yield head(target.site, "POST", MAPS, {"content-length": str(20_000_000)})
        for _ in range(20):
            yield b" " * 1_000_000

    replies: list[Reply] = [exchange(target.site, all_of_it()) for _ in range(3)]
    assert [reply.code for reply in replies] == [413] * 3

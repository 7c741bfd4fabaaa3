"""Tests of a connection's limits on an event loop with virtual time, without a socket and without waiting."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from ctrlmgr.http.size_limits import DEFAULT, Bounds
from ctrlmgr.testing.fake_clock import FakeClock
from tests.http.loopback import CERTIFICATE, PRESENTED, Client

HEAD_TIMEOUT, HEAD_LIMIT, LINGER, KEEP_ALIVE = (
    DEFAULT.head_timeout,
    DEFAULT.head_bytes,
    DEFAULT.linger,
    DEFAULT.keep_alive,
)


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.connection.connection_lost(None)
    assert not client.loop.waiting
    assert all(timer.cancelled or timer.when <= client.loop.now + LINGER for timer in client.loop.timers)


GET = b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n"
OK, TOO_LARGE, BAD = b"HTTP/1.1 200 OK", b"HTTP/1.1 431 Request Header Fields Too Large", b"HTTP/1.1 400 Bad Request"


def headed(size: int) -> bytes:
    """Return a request whose header has this number of bytes, not counting the method and the version."""
    head = b"GET / HTTP/1.1\r\nhost: x\r\nx: %b\r\n\r\n"
    return head % (b"a" * (size - len(b"/") - len(b"host: x\r\n") - len(b"x: \r\n")))


def drip(client: Client, data: bytes, seconds: float) -> None:
    """Send a request byte by byte, with a pause after each byte."""
    for at in range(len(data)):
        client.send(data[at : at + 1])
        client.loop.pass_time(seconds)


def test_a_silent_client_is_disconnected_after_32_seconds(client: Client) -> None:
    client.loop.pass_time(HEAD_TIMEOUT - 0.1)
    assert not client.transport.is_closing()
    client.loop.pass_time(0.2)
    assert (client.transport.aborted, client.said) == (True, [])


def test_endless_headers_are_disconnected(client: Client) -> None:
    drip(client, GET[:31], 1.0)
    assert not client.transport.is_closing()
    drip(client, GET[31:33], 1.0)
    assert (client.transport.aborted, client.paths) == (True, [])


def test_every_request_has_the_same_timeout_for_its_headers(client: Client) -> None:
    client.loop.pass_time(20)
    client.send(GET)
    client.loop.pass_time(60)
    client.send(GET[:10])
    client.loop.pass_time(HEAD_TIMEOUT - 0.1)
    assert (client.transport.is_closing(), client.said) == (False, [OK])
    client.loop.pass_time(0.2)
    assert client.transport.aborted


def test_complete_headers_end_the_timeout(client: Client) -> None:
    drip(client, GET, 0.5)
    assert client.said == [OK]
    client.loop.pass_time(KEEP_ALIVE - len(GET))
    assert not client.transport.is_closing()


def test_blank_lines_do_not_extend_the_timeout(client: Client) -> None:
    client.send(GET)
    for _ in range(40):
        client.loop.pass_time(1)
        client.send(b"\r\n")
    assert (client.said, client.transport.aborted) == ([OK], True)


def test_an_unread_rest_of_a_body_closes_the_connection(client: Client) -> None:
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n")
    assert client.said == [OK]
    for _ in range(40):
        client.loop.pass_time(1)
        client.send(b"x" * 100)
    assert client.transport.aborted


def test_a_request_after_an_unread_body_is_served(client: Client) -> None:
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2000000\r\n\r\n" + b"x" * 2_000_000 + GET)
    client.loop.pass_time(HEAD_TIMEOUT + 1)
    assert (client.said, client.transport.is_closing()) == ([OK, OK], False)


@pytest.mark.parametrize("piece", [1000, 65_536, 1 << 20])
def test_headers_within_the_limit_are_read_and_larger_ones_refused(piece: int) -> None:
    within, beyond = Client(), Client()
    within.send(headed(HEAD_LIMIT - 100), piece)
    assert within.said == [OK]
    beyond.send(headed(HEAD_LIMIT + 1), piece)
    assert (beyond.said, beyond.paths, beyond.transport.closed) == ([TOO_LARGE], [], True)


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /" + b"a" * (HEAD_LIMIT + 70_000) + b" HTTP/1.1\r\n\r\n", id="a long path"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 200_000 + b"\r\n", id="many headers"),
        pytest.param(b"GET / HTTP/1.1\r\nx: " + b"a" * 5_000_000, id="a header without an end"),
    ],
)
def test_every_part_counts_toward_the_size_of_headers(client: Client, head: bytes) -> None:
    client.send(head)
    assert (client.said, client.paths) == ([TOO_LARGE], [])
    client.send(GET)
    assert (client.said, client.paths) == ([TOO_LARGE], [])  # later bytes are not parsed


def test_a_refused_client_has_time_to_read_the_response(client: Client) -> None:
    client.send(b"\x00" * 100)
    assert client.said == [BAD]
    assert client.transport.written.endswith(b"\r\nconnection: close\r\ncontent-length: 15\r\n\r\n400 Bad Request")
    assert (client.transport.closed, client.transport.aborted) == (True, False)
    client.loop.pass_time(LINGER)
    assert client.transport.aborted


def test_a_body_does_not_count_toward_the_size_of_headers(client: Client) -> None:
    for _ in range(3):
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\n" + b"x" * 3_000_000)
    assert client.said == [OK] * 3


SLOW = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n"
NONSENSE = b"GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n"
HALF = b"POST /half HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n"


@pytest.mark.parametrize("after", [NONSENSE, NONSENSE + GET, HALF + b"zz\r\n", b"GET /" + b"a" * (HEAD_LIMIT + 70_000)])
def test_earlier_requests_are_answered_first(client: Client, after: bytes) -> None:
    client.send(SLOW + GET + after)
    assert (client.said, client.transport.closed) == ([], False)
    client.loop.go_on()
    assert client.said == [OK]  # and no bytes between the parts of its answer
    client.loop.go_on()
    assert client.said == [OK, OK, TOO_LARGE if after[-1:] == b"a" else BAD]
    assert client.transport.closed
    assert client.paths == [b"/slow", b"/version"]
    assert b"/slowHTTP/1.1 200 OK" in client.transport.written


def test_an_invalid_body_is_refused_or_aborts_the_response(client: Client) -> None:
    client.send(HALF.replace(b"/half", b"/slow") + b"zz\r\n")
    assert (client.said, client.transport.closed) == ([BAD], True)
    client.connection.connection_lost(None)
    client.loop.go_on()
    client.loop.go_on()
    assert client.said == [BAD]
    begun = Client()
    begun.send(HALF.replace(b"/half", b"/slow"))
    begun.loop.go_on()
    begun.send(b"zz\r\n")
    assert (begun.said, begun.transport.closed) == ([OK], True)


def test_the_rest_of_a_body_is_not_parsed_as_a_request(client: Client) -> None:
    client.send(HALF)
    client.send(b"zz\r\n" + GET)
    assert (client.said, len(client.paths), client.transport.closed) == ([OK], 1, True)


@pytest.mark.parametrize("hosts", [b"", b"host: x\r\nhost: x\r\n", b"host: x\r\nHost: y\r\n"])
def test_a_request_has_exactly_one_host(client: Client, hosts: bytes) -> None:
    client.send(b"GET / HTTP/1.1\r\n" + hosts + b"\r\n")
    assert (client.said, client.paths) == ([BAD], [])


def test_an_invalid_target_is_refused(client: Client) -> None:
    client.send(GET + b"GET http://[::1 HTTP/1.1\r\nhost: x\r\n\r\n")
    assert (client.said, len(client.paths)) == ([OK, BAD], 1)


def test_a_request_of_http_1_0_needs_no_host(client: Client) -> None:
    client.send(b"GET / HTTP/1.0\r\n\r\n")
    assert (client.said, client.transport.closed) == ([OK], True)


def test_a_body_that_was_not_requested_is_not_awaited(client: Client) -> None:
    client.send(b"POST /whole HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n")
    assert (client.said, client.transport.closed) == ([OK], True)
    assert b"\r\nconnection: close\r\n" in client.transport.written


@pytest.mark.parametrize(
    "upgrade", [b"GET /whole HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c", b"CONNECT /whole HTTP/1.1"]
)
def test_the_connection_closes_after_an_ignored_upgrade(
    client: Client, upgrade: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    client.send(SLOW + upgrade + b"\r\nhost: x\r\n\r\n" + GET)
    client.loop.go_on()
    client.loop.go_on()
    assert (client.said, client.transport.closed) == ([OK, OK], True)
    assert client.transport.written.count(b"connection: close") == 1
    client.send(GET)
    assert client.said == [OK, OK]
    assert not caplog.records  # a client could cause this as often as it wants


def test_a_connection_is_idle_after_an_unread_body_ends(client: Client) -> None:
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n")
    client.send(b"x" * 4)
    client.send(b"x" * 5)
    client.loop.pass_time(KEEP_ALIVE - 1)
    assert not client.transport.is_closing()
    client.loop.pass_time(2)
    assert client.transport.closed


def test_the_timeout_of_an_unread_body_does_not_limit_the_next_request(client: Client) -> None:
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n")
    client.send(b"x" * 4)
    client.send(b"x" * 5 + SLOW)
    client.loop.pass_time(KEEP_ALIVE + HEAD_TIMEOUT)
    assert not client.transport.is_closing()
    client.loop.go_on()
    client.loop.go_on()
    assert client.said == [OK, OK]


def test_every_request_has_the_clients_certificate(client: Client) -> None:
    client.send(GET + GET)
    assert [list(exchange.certificates) for exchange in client.exchanges] == [PRESENTED] * 2


def test_a_certificate_that_was_already_expired_does_not_end_the_connection() -> None:
    clock = FakeClock()
    client = Client(clock=clock, certificate=expiring(clock, seconds=-100))
    client.send(GET)
    assert client.said == [OK]
    assert not client.transport.is_closing()


def test_a_stopping_server_does_not_wait_for_idle_clients(client: Client) -> None:
    client.send(GET)
    client.connection.shutdown()
    assert (client.transport.closed, client.transport.aborted) == (True, False)
    client.loop.pass_time(LINGER)
    assert client.transport.aborted


@pytest.mark.parametrize("path", [b"/version", b"/whole"])
def test_a_stopping_server_sends_connection_close_with_the_next_response(client: Client, path: bytes) -> None:
    client.send(GET)
    client.connection.announce_close()
    assert not client.transport.closed, "what the client is just sending would be lost"
    client.send(GET.replace(b"/version", path))
    assert client.said == [OK, OK]
    assert client.transport.written.count(b"connection: close\r\n") == 1
    assert client.transport.closed


def test_a_stopping_server_sends_connection_close_with_the_running_response(client: Client) -> None:
    client.send(SLOW)
    client.connection.announce_close()
    client.loop.go_on()
    assert b"connection: close\r\n" in client.transport.written
    client.loop.go_on()
    assert client.transport.closed


def test_a_stopping_server_waits_for_clients_that_read_a_response(client: Client) -> None:
    client.send(SLOW)
    client.connection.shutdown()
    assert not client.transport.closed
    client.transport.unread = 1000
    client.loop.go_on()
    client.loop.go_on()
    assert (client.transport.closed, client.said) == (True, [OK])
    for left in (900, 500, 400):
        client.transport.unread = left
        client.loop.pass_time(LINGER)
        assert not client.transport.aborted
    client.loop.pass_time(LINGER)  # the client has not read since then
    assert client.transport.aborted


def test_a_response_in_pieces_is_chunked(client: Client) -> None:
    client.send(GET.replace(b"/version", b"/chunks") + GET)
    assert (
        b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n" in client.transport.written
    )
    assert client.said == [OK, OK]


def test_pipelined_requests_yield_to_the_event_loop(client: Client) -> None:
    client.connection.receive(GET * 50)
    assert len(client.said) == 1
    client.loop.run()
    assert len(client.said) == 50


def test_a_client_that_does_not_read_gets_no_further_responses(client: Client) -> None:
    client.connection.pause_writing()
    client.send(GET * 3)
    assert (client.said, client.transport.takes_in) == ([], False)
    client.connection.resume_writing()
    client.loop.run()
    assert (client.said, client.transport.takes_in) == ([OK] * 3, True)


def test_a_client_that_reads_nothing_for_a_long_time_is_disconnected(client: Client) -> None:
    client.send(GET)
    client.transport.unread = 1000
    client.connection.pause_writing()
    client.loop.pass_time(DEFAULT.write_timeout - 1)
    client.transport.unread = 900
    client.loop.pass_time(DEFAULT.write_timeout)
    assert not client.transport.aborted, "it has read something"
    client.loop.pass_time(DEFAULT.write_timeout)
    assert client.transport.aborted


def test_a_client_that_resumes_reading_is_not_disconnected(client: Client) -> None:
    client.transport.unread = 1000
    client.connection.pause_writing()
    client.connection.resume_writing()
    client.send(GET)
    client.loop.pass_time(DEFAULT.write_timeout + 1)
    assert not client.transport.is_closing()


@pytest.mark.parametrize("path", [b"/version", b"/slow"])
def test_an_expired_certificate_ends_its_connection(path: bytes) -> None:
    clock = FakeClock()
    client = Client(clock=clock, certificate=expiring(clock, seconds=100))
    client.send(GET.replace(b"/version", path))
    client.loop.go_on()
    client.loop.pass_time(89)
    assert not client.transport.is_closing()
    clock.step(101)
    client.loop.pass_time(12)
    assert client.transport.is_closing()
    client.send(GET)
    assert len(client.exchanges) == 1
    client.connection.connection_lost(None)
    client.loop.go_on()


def test_the_timer_of_a_certificate_that_expires_in_years_is_renewed() -> None:
    clock = FakeClock()
    client = Client(clock=clock, certificate=expiring(clock, seconds=200_000))
    client.connection.receive(GET.replace(b"/version", b"/slow"))
    client.loop.run()
    clock.step(86_400)
    client.loop.pass_time(86_400)
    clock.step(86_400)
    client.loop.pass_time(86_400)
    assert not client.transport.is_closing()
    clock.step(30_000)
    client.loop.pass_time(30_000)
    client.loop.go_on()
    client.loop.go_on()
    assert client.transport.is_closing()


def expiring(clock: FakeClock, seconds: float) -> dict[str, Any]:
    at = datetime.fromtimestamp(clock.now() / 1_000_000 + seconds, UTC)
    return {**CERTIFICATE, "notAfter": at.strftime("%b %d %H:%M:%S %Y GMT")}


def test_a_failing_or_silent_application_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    for path in (b"/fails", b"/silent"):
        client = Client()
        client.send(GET.replace(b"/version", path))
        assert (client.transport.aborted, client.said) == (True, [])


# Request headers that are buffered.


def long_head(path: bytes = b"/slow", size: int = 30_000) -> bytes:
    return b"GET %b HTTP/1.1\r\nhost: x\r\nx: %b\r\n\r\n" % (path, b"a" * size)


def test_the_header_bytes_of_a_connection_are_bounded() -> None:
    client = Client(Bounds(connection_heads_bytes=70_000))
    client.send(long_head() * 3)
    for _ in range(6):
        client.loop.go_on()
    assert [line.split()[1] for line in client.said] == [b"200", b"200", b"431"]
    assert client.transport.closed
    assert client.context.heads.held == 0


def test_the_header_bytes_of_a_server_are_bounded_except_short_ones() -> None:
    client = Client(Bounds(heads_bytes=20_000))
    client.send(long_head(b"/a", 5_000))
    client.send(long_head(b"/a"))
    assert [line.split()[1] for line in client.said] == [b"200", b"431"]


@pytest.mark.parametrize("path", [b"/a", b"/chunks", b"/silent"])
def test_header_bytes_are_released_after_the_response(path: bytes) -> None:
    client = Client()
    client.send(long_head(path))
    assert client.context.heads.held == 0


def test_header_bytes_of_a_lost_connection_are_released() -> None:
    client = Client()
    client.send(long_head() * 2)
    assert client.context.heads.held > 60_000
    client.connection.connection_lost(None)
    client.loop.go_on()
    assert client.context.heads.held == 0

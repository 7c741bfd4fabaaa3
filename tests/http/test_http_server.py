"""Tests of the server over real sockets on a free port: responses, connections, start and stop."""

from __future__ import annotations

import gc
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry, Counter

from ctrlmgr import threads
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SettingsError
from ctrlmgr.http import http_server as serving_http
from ctrlmgr.http.framing import chunk
from ctrlmgr.http.http1_connection import Connection
from ctrlmgr.http.lazy_timer import LazyTimer
from ctrlmgr.http.response_stream import Stream
from ctrlmgr.http.size_limits import DEFAULT, Bounds
from ctrlmgr.server import Check, Health, HttpServer
from ctrlmgr.server.presenting import sending
from ctrlmgr.server.watch.hub import Hub
from tests.background import background
from tests.server.site import CONFIG_MAPS, TIMEOUT, Site, await_refusal, make, running, serving

PROBLEMS: list[str] = []
"""The reason for which the health check `log` fails."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Site]:
    registry = CollectorRegistry()
    Counter("things_seen", "Things seen", registry=registry).inc(3)
    checks = [Check("log", lambda: PROBLEMS[0] if PROBLEMS else None)]
    with running(make(health=[Health("livez", []), Health("readyz", checks)], registry=registry)) as site:
        yield site


@pytest.fixture
def site(shared: Site) -> Site:
    PROBLEMS.clear()
    return shared


def test_readyz_returns_ok(site: Site) -> None:
    answer = site.ask("/readyz")
    assert (answer.status, answer.body) == (200, "ok")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_readyz_verbose_lists_the_checks(site: Site) -> None:
    assert site.ask("/readyz?verbose").body == "[+]log ok\nreadyz check passed\n"


def test_a_failing_check_returns_500(site: Site) -> None:
    PROBLEMS.append("no route to the database")
    answer = site.ask("/readyz")
    assert (answer.status, answer.body) == (500, "[-]log failed: reason withheld\nreadyz check failed\n")
    assert site.ask("/readyz/log").body == "internal server error: no route to the database\n"
    assert site.ask("/livez").status == 200
    assert site.ask("/readyz?exclude=log").status == 200


def test_a_single_check_has_a_path(site: Site) -> None:
    assert site.ask("/readyz/log").status == 200
    assert site.ask("/readyz/nothing").status == 404


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param("", "text/plain; version=", id="text by default"),
        pytest.param("application/openmetrics-text; version=1.0.0", "application/openmetrics-text", id="as asked for"),
    ],
)
def test_metrics_are_prometheus_text(site: Site, accept: str, content_type: str) -> None:
    answer = site.ask("/metrics", headers={"Accept": accept})
    assert answer.status == 200
    assert answer.headers["content-type"].startswith(content_type)
    assert "things_seen_total 3.0\n" in answer.body


def test_the_version_is_returned(site: Site) -> None:
    assert site.ask("/version").json["gitVersion"].startswith("v1.36.2+ctrlmgr")


def test_the_root_lists_the_paths(site: Site) -> None:
    paths = site.ask("/").json["paths"]
    expected = {
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps/v1",
        "/livez",
        "/metrics",
        "/openapi/v3",
        "/readyz/log",
        "/version",
    }
    assert expected <= set(paths)
    assert paths == sorted(paths)
    slow = ("/openapi",)
    assert all(site.ask(path).status == 200 for path in paths if not path.startswith(slow))


def test_a_cached_document_is_not_sent_again(site: Site) -> None:
    first = site.ask("/apis")
    again = site.ask("/apis", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, "")
    assert site.ask("/apis", headers={"If-None-Match": '"other"'}).body == first.body


def test_a_long_document_is_compressed_if_the_client_accepts_it(site: Site) -> None:
    connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=TIMEOUT)
    connection.request("GET", "/api/v1", headers={"Accept-Encoding": "deflate, gzip"})
    response = connection.getresponse()
    assert response.headers["content-encoding"] == "gzip"
    assert len(response.read()) < len(site.ask("/api/v1").body) / 2
    connection.close()


def test_a_trailing_slash_changes_nothing(site: Site) -> None:
    assert site.ask("/version/").body == site.ask("/version").body


@pytest.mark.parametrize("path", ["/nothing", "/metrics/more", "/readyzz"])
def test_an_unknown_path_returns_404(site: Site, path: str) -> None:
    assert site.ask(path).status == 404


@pytest.mark.parametrize("path", ["/livez/", "/readyz/", "/readyz/log/", "/readyz/log/more", "/metrics/"])
def test_pages_are_found_by_their_complete_path(site: Site, path: str) -> None:
    answer = site.ask(path)
    assert (answer.status, answer.body) == (404, "404 page not found\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_health_ignores_the_method(site: Site, method: str) -> None:
    answer = site.ask("/readyz", method)
    assert (answer.status, answer.body) == (200, "ok")


def test_a_check_can_have_slashes_in_its_name() -> None:
    checks = [Check("poststarthook/rbac/bootstrap-roles", lambda: None)]
    with running(make(health=[Health("readyz", checks)])) as site:
        assert site.ask("/readyz/poststarthook/rbac/bootstrap-roles").body == "ok"
        assert site.ask("/readyz/poststarthook").status == 404


def test_an_invalid_path_is_refused_first(site: Site) -> None:
    answer = site.ask("/api/v1/watch?x=1")
    said = "failed to create RequestInfo: unable to determine kind and namespace from url, /api/v1/watch?x=1"
    assert (answer.status, answer.body) == (500, f'Internal Server Error: "/api/v1/watch?x=1": {said}\n')


def test_head_returns_a_get_without_the_body(site: Site) -> None:
    got, head = site.ask("/readyz"), site.ask("/readyz", "HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, "", got.headers["content-length"])


# Connections.


def answers(connection: socket.socket, count: int) -> list[bytes]:
    """Read `count` responses with a content-length, and return their bodies."""
    reading, bodies = connection.makefile("rb"), []
    for _ in range(count):
        assert reading.readline().startswith(b"HTTP/1.1 200")
        length = 0
        while (line := reading.readline().lower()) != b"\r\n":
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        bodies.append(reading.read(length))
    return bodies


def test_pipelined_requests_are_answered_in_order(site: Site) -> None:
    with site.connect() as connection:
        connection.sendall(
            b"".join(b"GET /%b HTTP/1.1\r\nhost: x\r\n\r\n" % path for path in (b"livez", b"version", b"readyz"))
        )
        first, second, third = answers(connection, 3)
    assert (first, third) == (b"ok", b"ok")
    assert b"gitVersion" in second


def test_a_client_that_requests_it_gets_connection_close(site: Site) -> None:
    with site.connect() as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert b"\r\nconnection: close\r\n" in connection.makefile("rb").read()


def test_a_waiting_client_gets_100_continue(site: Site) -> None:
    body = b'{"metadata":{"name":"expected"}}'
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {len(body)}\r\n\r\n"
    with site.connect() as connection:
        reading = connection.makefile("rb")
        connection.sendall(head.encode())
        assert reading.readline() == b"HTTP/1.1 100 Continue\r\n"
        connection.sendall(body)
        assert reading.readline() == b"\r\n"
        assert reading.readline() == b"HTTP/1.1 201 Created\r\n"


def test_a_chunked_body_is_read(site: Site) -> None:
    with site.connect() as connection:
        head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + chunk(b'{"metadata":{"na'))
        connection.sendall(chunk(b'me":"in-chunks"}}') + b"0\r\n\r\n")
        assert connection.makefile("rb").readline() == b"HTTP/1.1 201 Created\r\n"


def test_a_chunked_body_above_the_limit_is_refused_during_the_upload(site: Site) -> None:
    with site.connect() as connection:
        head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        for _ in range(4):
            connection.sendall(chunk(b"x" * 1_000_000))
        assert connection.makefile("rb").readline() == b"HTTP/1.1 413 Request Entity Too Large\r\n"


def test_too_large_headers_are_refused(site: Site) -> None:
    with site.connect() as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nhost: x\r\n")
        filler = b"x-filler: " + b"y" * 60_000 + b"\r\n"
        for _ in range(DEFAULT.head_bytes // len(filler) + 1):
            connection.sendall(filler)
        assert connection.makefile("rb").readline().startswith(b"HTTP/1.1 431 ")


def test_a_client_with_incomplete_headers_is_disconnected() -> None:
    with running(bounds=Bounds(head_timeout=0.1)) as site, site.connect() as silent, site.connect() as half:
        half.sendall(b"GET /version HTTP/1.1\r\nhost:")
        assert silent.recv(1) == b""
        assert half.recv(1) == b""


def test_malformed_input_is_a_bad_request(site: Site) -> None:
    with site.connect() as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        assert connection.makefile("rb").readline() == b"HTTP/1.1 400 Bad Request\r\n"


def received(connection: socket.socket) -> int:
    """Read until the server closes the connection, and return the number of bytes."""
    count = 0
    with suppress(ConnectionError):
        while data := connection.recv(1 << 16):
            count += len(data)
    return count


@pytest.mark.parametrize("sent", ["GET /version HTTP/1.1\r\nhost: x\r\n\r\n", "nonsense\r\n\r\n"])
def test_a_lost_connection_leaves_no_reference_cycles(sent: str) -> None:
    """A TLS connection has buffers of hundreds of kilobytes."""
    with running() as site:
        site.create("long", text="x" * 200_000)
        gc.collect()
        gc.disable()
        before = connections()
        try:
            for path in ("/version", f"{CONFIG_MAPS}/long"):
                with site.connect() as connection:
                    connection.sendall(sent.replace("/version", path).encode())
                    assert connection.recv(100)
            ends_at = time.monotonic() + TIMEOUT
            while connections() > before:  # a connection of an earlier test may end in the meantime
                assert time.monotonic() < ends_at
                threading.Event().wait(0.01)
        finally:
            gc.enable()


def connections() -> int:
    """Return the number of connection objects in memory."""
    return sum(type(each) is Connection for each in gc.get_objects())


def test_a_slow_reader_of_a_long_list_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PATIENCE", 0.1)
    cut_off, abort = threading.Event(), Stream.abort

    def aborting(stream: Stream) -> None:
        abort(stream)
        cut_off.set()

    monkeypatch.setattr(Stream, "abort", aborting)
    with running() as site:
        for number in range(40):
            site.create(f"large-{number}", text="x" * 500_000)
        with site.connect() as connection:
            connection.sendall(f"GET {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            assert site.ask("/version").status == 200, "the others are served meanwhile"
            assert site.ask("/api/v1/namespaces").status == 200
            assert cut_off.wait(TIMEOUT)
            assert received(connection) < 20_000_000


# Start and stop of the server.


def server(address: tuple[str, int] = ("127.0.0.1", 0)) -> HttpServer:
    return HttpServer(make().app, address, clock=SystemClock())


def test_a_port_in_use_is_refused_before_the_start(site: Site) -> None:
    port = urlsplit(site.url).port or 0
    with pytest.raises(
        SettingsError, match=rf"cannot listen on 127\.0\.0\.1:{port}: .*; choose another address with --listen"
    ):
        server(("127.0.0.1", port))


def test_a_host_of_another_machine_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"cannot listen on 192\.0\.2\.1:0"):
        server(("192.0.2.1", 0))


def test_the_port_is_released_by_stop() -> None:
    with serving(make().app) as url:
        port = urlsplit(url).port or 0
    server(("127.0.0.1", port)).close()


def test_servers_with_a_shared_port_listen_together() -> None:
    first = HttpServer(make().app, ("127.0.0.1", 0), clock=SystemClock(), shares_port=True)
    second = HttpServer(make().app, ("127.0.0.1", first.port), clock=SystemClock(), shares_port=True)
    assert first.url == second.url
    first.close()
    second.close()


def test_a_running_request_is_answered_before_the_server_stops() -> None:
    stop = threading.Event()

    def stop_now() -> None:
        stop.set()

    stopping = HttpServer(
        make(health=[Health("livez", [Check("last", stop_now)])]).app, ("127.0.0.1", 0), clock=SystemClock()
    )
    thread = threads.start("server under test", lambda: stopping.run(stop))
    assert Site(stopping.url, make().log).ask("/livez").body == "ok"
    thread.join(TIMEOUT)
    assert not thread.is_alive()


def test_a_server_can_continue_for_a_while_after_the_stop_signal() -> None:
    stop, made = threading.Event(), make(health=[Health("livez", [])])
    delayed = HttpServer(made.app, ("127.0.0.1", 0), clock=SystemClock(), delay=0.5)
    thread = threads.start("server under test", lambda: delayed.run(stop))
    site = Site(delayed.url, made.log)
    assert site.ask("/livez").body == "ok"
    stop.set()
    assert site.ask("/livez").body == "ok"
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        site.ask("/livez")


def test_connected_clients_get_a_last_response_at_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_http, "FAREWELL", TIMEOUT)
    stop, made = threading.Event(), make(health=[Health("livez", [])])
    stopping = HttpServer(made.app, ("127.0.0.1", 0), clock=SystemClock())
    thread = threads.start("server under test", lambda: stopping.run(stop))
    address = urlsplit(stopping.url)
    connection = http.client.HTTPConnection(address.netloc, timeout=TIMEOUT)
    assert ask_once(connection) == (200, None)
    stop.set()
    await_refusal(address.hostname or "", address.port or 0)
    assert ask_once(connection) == (200, "close")
    thread.join(TIMEOUT)
    assert not thread.is_alive()


def test_idle_connections_do_not_delay_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_http, "FAREWELL", 10 * TIMEOUT)
    waited = LazyTimer.waited
    monkeypatch.setattr(LazyTimer, "waited", property(lambda self: 20 * TIMEOUT if waited.__get__(self) else 0.0))
    stop, made = threading.Event(), make(health=[Health("livez", [])])
    stopping = HttpServer(made.app, ("127.0.0.1", 0), clock=SystemClock())
    thread = threads.start("server under test", lambda: stopping.run(stop))
    connection = http.client.HTTPConnection(urlsplit(stopping.url).netloc, timeout=TIMEOUT)
    assert ask_once(connection) == (200, None)
    stop.set()
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    connection.close()


def ask_once(connection: http.client.HTTPConnection) -> tuple[int, str | None]:
    connection.request("GET", "/livez")
    answer = connection.getresponse()
    answer.read()
    return answer.status, answer.getheader("connection")


def test_maintenance_runs_while_the_server_serves() -> None:
    done = threading.Event()
    tidy = HttpServer(make().app, ("127.0.0.1", 0), clock=SystemClock(), housekeeping=[done.set])
    stop = threading.Event()
    thread = threads.start("server under test", lambda: tidy.run(stop))
    assert done.wait(TIMEOUT)
    stop.set()
    thread.join(TIMEOUT)
    assert not thread.is_alive()


def test_a_server_with_a_failed_watch_task_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watches that stay open without events would be worse, because clients could not detect the failure."""

    def fail(hub: Hub) -> None:
        raise RuntimeError("the hub is broken")

    monkeypatch.setattr(Hub, "_release", fail)
    broken = server()
    with pytest.raises(ExceptionGroup, match="unhandled errors") as failed:
        background(lambda: broken.run(threading.Event())).result(TIMEOUT)
    assert str(failed.value.exceptions[0]) == "the hub is broken"

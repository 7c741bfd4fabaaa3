"""The server as its clients see it: real requests over a real socket, on a port that was free."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry, Counter

from ctrlmgr import __version__, threads
from ctrlmgr.errors import SettingsError
from ctrlmgr.server import App, Check, Health, HttpServer


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str


class Site(NamedTuple):
    """A running server; what `problems` holds is what its check `log` complains of."""

    url: str
    problems: list[str]

    def ask(self, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=10)
        try:
            connection.request(method, path, headers=headers or {})
            response = connection.getresponse()
            lowered = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, lowered, response.read().decode())
        finally:
            connection.close()


@contextmanager
def serving(app: App, address: tuple[str, int] = ("127.0.0.1", 0)) -> Iterator[str]:
    server, stop = HttpServer(app, address), threading.Event()
    thread = threads.start("server under test", lambda: server.run(stop))
    try:
        yield server.url
    finally:
        stop.set()
        thread.join(10)
        assert not thread.is_alive(), "the server did not stop"


@pytest.fixture(scope="module")
def running() -> Iterator[Site]:
    problems: list[str] = []
    registry = CollectorRegistry()
    Counter("things_seen", "Things seen", registry=registry).inc(3)
    checks = [Check("log", lambda: problems[0] if problems else None)]
    with serving(App([Health("livez", []), Health("readyz", checks)], registry)) as url:
        yield Site(url, problems)


@pytest.fixture
def site(running: Site) -> Site:
    running.problems.clear()
    return running


def test_readyz_says_ok(site: Site) -> None:
    answer = site.ask("/readyz")
    assert (answer.status, answer.body) == (200, "ok")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_readyz_verbose_lists_the_checks(site: Site) -> None:
    assert site.ask("/readyz?verbose").body == "[+]log ok\nreadyz check passed\n"


def test_a_failing_check_is_a_500(site: Site) -> None:
    site.problems.append("no route to the database")
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


def test_the_version_is_told(site: Site) -> None:
    assert json.loads(site.ask("/version").body)["gitVersion"] == f"v{__version__}"


def test_the_root_lists_the_paths(site: Site) -> None:
    paths = json.loads(site.ask("/").body)["paths"]
    assert paths == ["/livez", "/metrics", "/readyz", "/readyz/log", "/version"]
    assert all(site.ask(path).status == 200 for path in paths)


def test_a_trailing_slash_changes_nothing(site: Site) -> None:
    assert site.ask("/version/").body == site.ask("/version").body


@pytest.mark.parametrize("path", ["/nothing", "/metrics/more", "/readyzz"])
def test_what_is_not_there_is_a_404(site: Site, path: str) -> None:
    assert site.ask(path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_reading_is_allowed(site: Site, method: str) -> None:
    answer = site.ask("/readyz", method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_head_is_a_get_without_the_body(site: Site) -> None:
    got, head = site.ask("/version"), site.ask("/version", "HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, "", got.headers["content-length"])


def test_a_port_in_use_is_refused_before_anything_runs(site: Site) -> None:
    port = urlsplit(site.url).port or 0
    with pytest.raises(SettingsError, match=rf"cannot listen on 127\.0\.0\.1:{port}: .*; give another with --listen"):
        HttpServer(App([], CollectorRegistry()), ("127.0.0.1", port))


def test_a_host_that_is_not_this_machine_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"cannot listen on 192\.0\.2\.1:0"):
        HttpServer(App([], CollectorRegistry()), ("192.0.2.1", 0))


def test_the_port_is_free_again_once_stopped() -> None:
    with serving(App([], CollectorRegistry())) as url:
        port = urlsplit(url).port or 0
    HttpServer(App([], CollectorRegistry()), ("127.0.0.1", port)).close()


def test_a_request_under_way_is_answered_before_the_server_stops() -> None:
    """A connection that was accepted and then asks while the server stops still gets its answer."""
    stop = threading.Event()

    def stop_now() -> None:
        stop.set()

    server = HttpServer(App([Health("livez", [Check("last", stop_now)])], CollectorRegistry()), ("127.0.0.1", 0))
    thread = threads.start("server under test", lambda: server.run(stop))
    assert Site(server.url, []).ask("/livez").body == "ok"
    thread.join(10)
    assert not thread.is_alive()

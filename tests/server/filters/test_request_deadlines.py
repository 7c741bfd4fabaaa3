"""Tests of the maximum duration of requests: `?timeout=`, and the 504 for a request that takes too long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.authorization.attributes import Attributes, path_attributes
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.request_head import Head
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.server.filters.request_deadlines import RequestDeadlines
from ctrlmgr.server.filters.request_ids import RequestIds
from ctrlmgr.server.request import Request
from ctrlmgr.server.routes import locate
from tests.http.test_exchange import RecordedConnection
from tests.server.site import CONFIG_MAPS, Site, make, running

GET = Attributes("get", resource="pods")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running() as site:
        yield site


def seconds(query: bytes, attributes: Attributes = GET) -> float | None:
    exchange = Exchange(Head("GET", b"/", query, HeaderLines()), RecordedConnection(), DEFAULT)
    return RequestDeadlines(60.0).seconds(Request(exchange, locate(b"/"), RequestIds(Random(1))), attributes)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (b"", 60.0),
        (b"timeout=", 60.0),
        (b"timeout=0s", 60.0),
        (b"timeout=-1s", 60.0),
        (b"timeout=2m", 60.0),
        (b"timeout=1s500ms", 1.5),
        (b"timeout=5s&timeout=x", 5.0),
    ],
)
def test_a_client_can_request_a_shorter_timeout(query: bytes, expected: float) -> None:
    assert seconds(query) == expected


@pytest.mark.parametrize(
    "attributes",
    [
        Attributes("watch", resource="pods"),
        Attributes("get", resource="pods", subresource="log"),
        Attributes("proxy", resource="nodes"),
        path_attributes("get", "/debug/profile"),
    ],
)
def test_long_running_requests_have_no_limit(attributes: Attributes) -> None:
    assert seconds(b"timeout=nonsense", attributes) is None


def test_a_malformed_timeout_is_refused(site: Site) -> None:
    answer = site.ask(f"{CONFIG_MAPS}?timeout=5")
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    problem = 'invalid timeout specified in the request URL - time: missing unit in duration "5"'
    assert answer.json["message"] == problem


def test_a_request_above_its_timeout_gets_504(site: Site) -> None:
    with site.connect() as connection:
        head = f"POST {CONFIG_MAPS}?timeout=50ms HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        connection.sendall(f"{head}content-length: 100\r\n\r\n{{".encode())
        answer, _, body = connection.recv(65536).partition(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 504 ")
        assert b"content-type: text/plain; charset=utf-8" in answer
        assert json.loads(body) == {
            "metadata": {},
            "status": "Failure",
            "message": "Timeout: request did not complete within the allotted timeout",
            "reason": "Timeout",
            "details": {},
            "code": 504,
        }
    assert site.ask(CONFIG_MAPS).status == 200


def test_a_watch_without_a_timeout_lasts_at_least_the_configured_time() -> None:
    with running(make(shortest_watch=0.0)) as site, site.watch("timeout=1ms") as watch:
        assert watch.rest() == []

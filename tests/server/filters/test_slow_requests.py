"""Tests of the traces of slow requests in the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from ctrlmgr.server import http_application
from tests.server.site import CONFIG_MAPS, make, running

AGENT = {"User-Agent": "tester/1", "Audit-ID": "mine"}


def traces(path: str, method: str = "GET", body: Any = None, *, logs: bool = False) -> list[Mapping[str, Any]]:
    """Send a request, and return the traces that the server logs."""
    with capture_logs() as lines, running(make(logs_requests=logs)) as site:
        site.ask(path, method, body, AGENT)
    return [line for line in lines if line["event"].startswith("Trace[")]


@pytest.fixture
def _all_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_application, "SLOW", 0.0)


def test_a_fast_request_has_no_trace() -> None:
    assert traces(CONFIG_MAPS) == []


@pytest.mark.usefixtures("_all_are_slow")
@pytest.mark.parametrize(
    ("path", "method", "body", "name", "code"),
    [
        (f"{CONFIG_MAPS}/none", "GET", None, "Get", 404),
        (CONFIG_MAPS, "GET", None, "List", 200),
        (CONFIG_MAPS, "POST", {"metadata": {"name": "a"}}, "Create", 201),
        (CONFIG_MAPS, "DELETE", None, "Delete", 200),
    ],
)
def test_a_slow_request_has_a_trace(path: str, method: str, body: Any, name: str, code: int) -> None:
    [trace] = traces(f"{path}?pretty=true", method, body)
    number, _, written = trace["event"].removeprefix("Trace[").partition("]: ")
    assert (number.isdecimal(), written) == (True, f'"{name}"')
    assert (trace["url"], trace["namespace"], trace["resource"]) == (path, "default", "configmaps")
    assert (trace["resp"], trace["user-agent"], trace["audit-id"]) == (code, "tester/1", "mine")
    assert list(trace["steps"]) == ["About to write a response", "Writing http response done"]
    assert all(each.endswith("s") and each != "0s" for each in (trace["total_time"], *trace["steps"].values()))
    assert trace["latencies"] == {}


@pytest.mark.usefixtures("_all_are_slow")
def test_a_trace_has_the_stages_if_they_are_measured() -> None:
    [trace] = traces(CONFIG_MAPS, "POST", {"metadata": {"name": "a"}}, logs=True)
    assert {"authentication", "etcd", "response-write"} <= trace["latencies"].keys()


@pytest.mark.usefixtures("_all_are_slow")
@pytest.mark.parametrize("path", [f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1", "/version", "/api/v1"])
def test_watches_and_pages_have_no_trace(path: str) -> None:
    assert traces(path) == []

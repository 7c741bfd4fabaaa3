"""Tests of the request log, and of the latencies in the log and in audit events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from ctrlmgr.audit.policy import read_policy
from ctrlmgr.audit.request_record import Record
from ctrlmgr.clock import SystemClock
from ctrlmgr.server.auditing.audit_filter import Auditing
from ctrlmgr.tracing import latencies
from tests.server.auditing.test_auditing import MemoryAudit
from tests.server.site import CONFIG_MAPS, Site, make, running

AGENT = {"User-Agent": "tester/1", "Audit-ID": "mine"}
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"


def lines_of(path: str, method: str = "GET", body: Any = None, *, logs: bool = True) -> list[Mapping[str, Any]]:
    """Send a request, and return the lines of the request log."""
    with capture_logs() as lines, running(make(logs_requests=logs)) as site:
        site.ask(path, method, body, AGENT)
    return [line for line in lines if line["event"] == "HTTP"]


def test_a_request_has_one_line_with_the_fields_of_kubernetes() -> None:
    [line] = lines_of(f"{CONFIG_MAPS}?limit=5")
    assert (line["verb"], line["URI"], line["resp"]) == ("LIST", f"{CONFIG_MAPS}?limit=5", 200)
    assert (line["userAgent"], line["audit-ID"], line["srcIP"]) == ("tester/1", "mine", "127.0.0.1")
    assert (line["apf_pl"], line["apf_fs"]) == ("exempt", "exempt")
    assert (line["apf_iseats"], line["apf_fseats"], line["apf_additionalLatency"]) == (1, 0, "0s")
    assert line["latency"].endswith(("ms", "µs"))
    assert {"authentication", "authorization", "response-write"} <= line["latencies"].keys()


def test_a_write_shows_the_time_of_its_append() -> None:
    [line] = lines_of(CONFIG_MAPS, "POST", {"metadata": {"name": "a"}})
    assert (line["verb"], line["resp"]) == ("CREATE", 201)
    assert "etcd" in line["latencies"]


@pytest.mark.parametrize(("path", "verb", "code"), [("/nowhere", "GET", 404), (f"{CONFIG_MAPS}/none", "GET", 404)])
def test_refused_requests_are_logged(path: str, verb: str, code: int) -> None:
    [line] = lines_of(path)
    assert (line["verb"], line["resp"]) == (verb, code)


def test_requests_are_not_logged_by_default() -> None:
    assert lines_of(CONFIG_MAPS, logs=False) == []


def test_the_audit_event_of_a_slow_request_has_its_latencies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, kept = tmp_path / "policy.yaml", MemoryAudit()
    file.write_text(POLICY)
    with running(make(auditing=Auditing(read_policy(file), [kept], [kept], clock=SystemClock()))) as site:
        quick = record_of(site, kept, "quick").annotations
        monkeypatch.setattr(latencies, "_SLOW", 0.0)
        slow = record_of(site, kept, "slow").annotations
    stages = {key.partition("/")[2] for key in slow if key.startswith("apiserver.latency.k8s.io/")}
    assert {"total", "authentication", "authorization", "etcd", "response-write"} <= stages
    assert not [key for key in quick if key.startswith("apiserver.latency.k8s.io/")]


def record_of(site: Site, kept: MemoryAudit, name: str) -> Record:
    """Create an object, and return the audit record of the request."""
    site.ask(CONFIG_MAPS, "POST", {"metadata": {"name": name}}, {"Audit-ID": name})
    return kept.record(name)

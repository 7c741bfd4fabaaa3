"""Tests of the metrics at `/metrics/slis`."""

from __future__ import annotations

from prometheus_client import generate_latest

from ctrlmgr.server.pages.health import PING, Check, Health
from ctrlmgr.server.pages.service_level_indicators import indicators
from tests.server.site import make, running


def test_results_are_counted_by_check_endpoint_and_status() -> None:
    problems = {"log": "away"}
    readyz = Health("readyz", [PING, Check("log", lambda: problems.get("log"))])
    registry = indicators([Health("livez", [PING]), readyz])
    assert b"kubernetes_healthcheck{" not in generate_latest(registry)
    readyz.report(verbose=False)
    assert registry.get_sample_value("kubernetes_healthcheck", {"name": "log", "type": "readyz"}) == 0
    problems.clear()
    readyz.report(verbose=False)
    readyz.report(verbose=False, exclude=["log"])
    counted = {
        (name, status): registry.get_sample_value(
            "kubernetes_healthchecks_total", {"name": name, "type": "readyz", "status": status}
        )
        for name in ("ping", "log")
        for status in ("success", "error")
    }
    assert counted == {("ping", "success"): 3, ("ping", "error"): None, ("log", "success"): 1, ("log", "error"): 1}
    assert registry.get_sample_value("kubernetes_healthcheck", {"name": "log", "type": "readyz"}) == 1
    assert registry.get_sample_value("kubernetes_healthcheck", {"name": "ping", "type": "livez"}) is None


def test_the_server_exports_the_results() -> None:
    with running(make(health=[Health("livez", [PING])])) as site:
        assert site.ask("/livez").status == 200
        answer = site.ask("/metrics/slis")
        assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, "text/plain")
        assert 'kubernetes_healthcheck{name="ping",type="livez"} 1.0' in answer.body
        assert 'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1.0' in answer.body
        assert site.ask("/metrics/slis", "POST").status == 405
        assert "/metrics/slis" in site.ask("/").json["paths"]

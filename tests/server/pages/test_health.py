"""Tests of health reports with kube-apiserver's messages, and of the health check that reads the log."""

from __future__ import annotations

import random

from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog import Head
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.server.pages.health import PING, Check, Health, LogProbe, after_grace
from ctrlmgr.testing import FakeClock

BROKEN = Check("caches", lambda: "pods have not synced")
SOUND = Health("readyz", [PING, Check("log", lambda: None)])
SICK = Health("readyz", [PING, BROKEN, Check("log", lambda: None)])


def test_a_passing_report_is_ok() -> None:
    assert SOUND.report(verbose=False) == (True, "ok")


def test_a_verbose_report_names_every_check() -> None:
    assert SOUND.report(verbose=True) == (True, "[+]ping ok\n[+]log ok\nreadyz check passed\n")


def test_a_failing_report_is_always_verbose_and_withholds_the_reason() -> None:
    text = "[+]ping ok\n[-]caches failed: reason withheld\n[+]log ok\nreadyz check failed\n"
    assert SICK.report(verbose=False) == (False, text)


def test_an_excluded_check_is_not_run() -> None:
    text = "[+]ping ok\n[+]caches excluded: ok\n[+]log ok\nreadyz check passed\n"
    assert SICK.report(verbose=True, exclude=["caches"]) == (True, text)


def test_excluding_an_unknown_check_causes_a_warning() -> None:
    ok, text = SOUND.report(verbose=True, exclude=["etcd", "dns"])
    assert ok
    assert 'warn: some health checks cannot be excluded: no matches for "dns", "etcd"\n' in text


def test_a_single_check_returns_its_reason() -> None:
    assert SICK.report_one("caches") == (False, "internal server error: pods have not synced\n")
    assert SICK.report_one("ping") == (True, "ok")
    assert SICK.report_one("etcd") is None


def test_a_check_with_a_grace_period_passes_until_the_period_ends() -> None:
    clock = FakeClock()
    checks = after_grace([BROKEN], 10.0, clock)
    assert Health("livez", checks).report(verbose=False) == (True, "ok")
    clock.step(10.0)
    assert Health("livez", checks).report_one("caches") == (False, "internal server error: pods have not synced\n")


class UnreachableLog(MemoryEventLog):
    """A log whose database does not respond while `away` is set."""

    away = False

    def head(self) -> Head:
        if self.away:
            raise LogUnavailable("connection refused")
        return super().head()


def test_the_probe_reports_an_unavailable_log_until_it_recovers() -> None:
    clock = FakeClock()
    log = UnreachableLog(clock=clock, random=random.Random(1))
    probe = LogProbe(log, clock=clock)
    probe.probe()
    assert probe.problem() is None
    log.away = True
    probe.probe()
    assert probe.problem() == "connection refused"
    log.away = False
    probe.probe()
    assert probe.problem() is None


def test_the_probe_reports_a_log_that_stopped_responding() -> None:
    clock = FakeClock()
    probe = LogProbe(MemoryEventLog(clock=clock, random=random.Random(1)), clock=clock)
    probe.probe()
    clock.step(5.0)
    assert probe.problem() is None
    clock.step(2.0)
    assert probe.problem() == "the log has not answered for 7 s"
    probe.probe()
    assert probe.problem() is None

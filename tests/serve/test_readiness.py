"""Tests of the log line and the file by which users and scripts detect that `serve` is ready."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ctrlmgr import threads
from ctrlmgr.errors import SettingsError
from ctrlmgr.serve.readiness import Readiness
from ctrlmgr.server import Check, Health
from ctrlmgr.testing import FakeClock

TIMEOUT = 10.0


def test_a_script_that_waits_for_the_file_reads_the_servers_url(tmp_path: Path) -> None:
    file = tmp_path / "ready"
    file.write_text("left behind")
    asked, is_up, stop = threading.Event(), threading.Event(), threading.Event()

    def is_ready() -> bool:
        asked.set()
        return is_up.is_set()

    with capture_logs() as logs:
        readiness = Readiness(is_ready, "https://127.0.0.1:6443", file, clock=FakeClock())
        running = threads.start("readiness under test", lambda: readiness.run(stop))
        assert asked.wait(TIMEOUT)
        assert not file.exists(), "it is another process's"
        is_up.set()
        while not file.exists():
            stop.wait(0.01)
        assert file.read_text() == "https://127.0.0.1:6443\n"
        stop.set()
        running.join(TIMEOUT)
    assert not file.exists()
    assert [entry["event"] for entry in logs] == ["ready"]


def test_readiness_follows_the_published_address_within_a_time_limit() -> None:
    asked, is_published, stop, clock = threading.Event(), threading.Event(), threading.Event(), FakeClock()

    def published() -> bool:
        asked.set()
        return is_published.is_set()

    with capture_logs() as logs:
        for is_in_time in (True, False):
            readiness = Readiness(lambda: True, "", None, clock=clock, is_published=published)
            asked.clear()
            is_published.clear()
            running = threads.start("readiness under test", lambda each=readiness: each.run(stop))  # type: ignore[misc]  # mypy cannot infer the type of a lambda with a default
            assert asked.wait(TIMEOUT)
            assert len(logs) == (0 if is_in_time else 1)
            if is_in_time:
                is_published.set()
            else:
                clock.step(6)
            while len(logs) < (1 if is_in_time else 2):
                stop.wait(0.01)
            stop.set()
            running.join(TIMEOUT)
            stop.clear()
    assert [entry["event"] for entry in logs] == ["ready", "ready"]


def test_an_unwritable_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "ready").mkdir()
    with pytest.raises(SettingsError, match=r"server.ready_file: .*/ready cannot be written"):
        Readiness(lambda: True, "", tmp_path / "ready", clock=FakeClock())


def test_failing_checks_during_the_start_are_not_logged() -> None:
    problems: dict[str, str | None] = {f"controller/{number}": f"{number} is not running" for number in range(60)}
    health = Health("readyz", [Check(name, partial(problems.get, name)) for name in problems])
    with capture_logs() as logs:
        assert not health.report(verbose=False)[0]
        problems.update(dict.fromkeys(problems))
        assert health.report(verbose=False)[0]
        problems.update(dict.fromkeys(problems, "gone"))
        assert not health.report(verbose=False)[0]
    assert [entry["log_level"] for entry in logs] == ["debug", "info"]
    assert (len(logs[1]), logs[1]["more"]) == (7, 57)

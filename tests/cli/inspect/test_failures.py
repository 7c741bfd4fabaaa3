"""Tests of `ctrlmgr failures`, and of the line about failures in the output of `ctrlmgr why`."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from ctrlmgr.clock import SystemClock, parse_time
from ctrlmgr.eventlog import Failure, open_log
from tests.cli.conftest import Run
from tests.inspection import story

BEGAN = parse_time("2026-01-02T03:04:10Z")
SECOND = 1_000_000


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of a log with a continuing failure of one object, and a failure of another
    object that has ended.
    """
    found = story.write(f"sqlite:///{tmp_path}/story.db")
    failing = Failure(
        controller="pod-painter",
        key="shop/web-1",
        since=BEGAN,
        last_at=BEGAN + 3 * SECOND,
        attempts=26,
        kind="Pod",
        error="KeyError: 'color'\nsecond line",
        traceback="Traceback (most recent call last):\n  File \"painter.py\", line 7\nKeyError: 'color'",
        next_retry_at=BEGAN + 9 * SECOND,
    )
    over = Failure(
        controller="endpoints-controller",
        key="shop/web",
        since=BEGAN - 9 * SECOND,
        last_at=BEGAN - 8 * SECOND,
        attempts=2,
        kind="",
        error="ValueError: once",
        ended_at=BEGAN - 5 * SECOND,
    )
    log = open_log(found, clock=SystemClock(), random=Random(4))
    log.record_failure(failing)
    log.record_failure(over)
    log.close()
    return found


def test_current_failures_are_a_table(run: Run, url: str) -> None:
    header, row = run("failures", "--database", url).out.splitlines()
    assert header.split("   ")[0] == "CONTROLLER"
    for told in (
        "pod-painter",
        "Pod/shop/web-1",
        "26",
        "2026-01-02T03:04:10Z",
        "2026-01-02T03:04:19Z",
        "KeyError: 'color'",
    ):
        assert told in row
    assert "second line" not in row


def test_wide_contains_the_traceback_and_json_all_fields(run: Run, url: str) -> None:
    assert 'File "painter.py", line 7' in run("failures", "-o", "wide", "--database", url).out
    (found,) = json.loads(run("failures", "-o", "json", "--database", url).out)["failures"]
    assert found["traceback"].startswith("Traceback")
    assert (found["attempts"], found["object"], found["ended"]) == (26, "shop/web-1", None)
    assert "pod-painter" in run("failures", "-o", "yaml", "--database", url).out


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--all",), ["pod-painter", "endpoints-controller"]),
        (("--at", "2026-01-02T03:04:03Z"), ["endpoints-controller"]),
        (("--at", "2026-01-02T03:04:06Z"), []),
        (("--at", "2026-01-02T03:04:11Z"), ["pod-painter"]),
    ],
)
def test_failures_at_a_past_revision_are_shown(run: Run, url: str, options: tuple[str, ...], names: list[str]) -> None:
    done = run("failures", *options, "--database", url)
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == names
    assert names or "no failures in sqlite:///" in done.err


def test_why_names_the_error(run: Run, url: str) -> None:
    *_, last = run("why", "pod", "web-1", "-n", "shop", "--database", url).out.splitlines()
    assert last.startswith("pod-painter fails for Pod shop/web-1: KeyError: 'color' (26 attempts since ")
    found = json.loads(run("why", "pod", "web-1", "-n", "shop", "-o", "json", "--database", url).out)
    assert found["failures"][0]["controller"] == "pod-painter"
    assert "fails for" not in run("why", "service", "web", "-n", "shop", "--database", url).out

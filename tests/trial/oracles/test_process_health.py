"""Oracles `process-ended` and `panic`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.trial.oracles.process_health import panics, process_ended
from ctrlmgr.trial.run_record import OperatorExit
from tests.trial.oracles.played import Played

PYTHON = """2026-01-01 ERROR handler failed
Traceback (most recent call last):
  File "operator.py", line 7, in create
    spec["backup"]["schedule"]
TypeError: 'NoneType' object is not subscriptable
"""
GO = """E0101 observed a request
panic: runtime error: invalid memory address or nil pointer dereference [recovered]
goroutine 1 [running]:
"""
NODE = """node:internal/process
TypeError: Cannot read properties of undefined (reading 'schedule')
    at reconcile (/operator.js:12:20)
"""


def test_an_end_that_the_trial_did_not_cause_is_found(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.exits = [OperatorExit(-9, True, 5), OperatorExit(1, False, 7), OperatorExit(-11, False, 8)]
    first, second = process_ended(played.kept(output=f"started\n{PYTHON}bye\n"))
    assert first.message == (
        "The operator's process exited unexpectedly with exit code 1 after the output"
        " \"TypeError: 'NoneType' object is not subscriptable\"."
    )
    assert first.revision == 7
    assert "signal 11" in second.message


def test_an_end_by_the_trial_is_no_finding(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.exits = [OperatorExit(-9, True, 5), OperatorExit(0, True, 9)]
    assert process_ended(played.kept()) == []


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (PYTHON, "TypeError: 'NoneType' object is not subscriptable"),
        (GO, "panic: runtime error: invalid memory address or nil pointer dereference [recovered]"),
        (NODE, "TypeError: Cannot read properties of undefined (reading 'schedule')"),
        ("E0101 Observed a panic: boom\n", "E0101 Observed a panic: boom"),
    ],
)
def test_programming_errors_are_found_once(tmp_path: Path, output: str, error: str) -> None:
    [found] = panics(Played(tmp_path).kept(output=output * 3))
    assert error in found.message


@pytest.mark.parametrize(
    "output",
    [
        "",
        "all fine\n",
        "Traceback (most recent call last):\n  File\nkubernetes.client.exceptions.ApiException: (500)\nReason: x\n",
        "Traceback (most recent call last):\n  File\nConnectionRefusedError: [Errno 111] Connection refused\n",
        "a TypeError: is only mentioned\n",
    ],
)
def test_failed_requests_are_no_programming_errors(tmp_path: Path, output: str) -> None:
    assert panics(Played(tmp_path).kept(output=output)) == []

"""The record of a finished run: what oracles and reports read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from ctrlmgr.clock import Clock
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.opening import open_log_for_reading

DATABASE = "ctrlmgr.db"
"""The name of the log's file in the folder of a run."""

OUTPUT = "operator.log"
"""The name of the file with the operator's output in the folder of a run."""


class StepSpan(NamedTuple):
    """The part of the log in which one step of the scenario ran.

    Events of the step have revisions greater than `began` and up to `ended`. The operator's reactions to the step may
    follow later.
    """

    began: int
    ended: int


class OperatorExit(NamedTuple):
    """One end of the operator's process.

    `code` is the exit code, or the negative number of the signal that ended the process. `by_trial` is true if the
    trial ended the process itself, as a perturbation or at the end of the run. `revision` is the head of the log.
    """

    code: int
    by_trial: bool
    revision: int


class RunRecord(NamedTuple):
    """The facts about a finished run.

    - `folder` contains the log (`ctrlmgr.db`) and the operator's output (`operator.log`).
    - `user` is the name of the operator's user; the operator's events have this name as their actor.
    - `started_at` is the revision after the setup; the operator started after it.
    - `steps` has one span for each step of the scenario that has ended.
    - `ended_at` is the revision at the end of the run, before the operator was stopped.
    - `exits` are the ends of the operator's process, in their order.
    - `became_quiet` is true if the log had become quiet when the run ended.
    - `failed_step` says why a step of the scenario failed; empty if none failed.
    """

    folder: Path
    user: str
    started_at: int
    steps: tuple[StepSpan, ...]
    ended_at: int
    exits: tuple[OperatorExit, ...] = ()
    became_quiet: bool = True
    failed_step: str = ""

    @property
    def database_url(self) -> str:
        """The URL of the run's log."""
        return database_url(self.folder)

    @property
    def output(self) -> str:
        """The operator's output of the whole run."""
        file = self.folder / OUTPUT
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def database_url(folder: Path) -> str:
    """Return the URL of the log in the folder of a run."""
    return f"sqlite:///{folder / DATABASE}"


@contextmanager
def opened_log(folder: Path, *, clock: Clock) -> Iterator[EventLog]:
    """Open the log in the folder of a run for reading, until the end of the context."""
    log = open_log_for_reading(database_url(folder), clock=clock, random=Random(0))
    try:
        yield log
    finally:
        log.close()

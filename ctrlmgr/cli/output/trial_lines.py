"""Prints the result of a trial for users: one block for each finding, and a summary."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import timedelta

from ctrlmgr.clock import format_time
from ctrlmgr.eventlog import Event
from ctrlmgr.logging import escape
from ctrlmgr.trial.trial_runner import Reported, TrialResult

_INDENT = "    "


def finding_lines(number: int, reported: Reported, events: Sequence[Event], again: str) -> Iterator[str]:
    """Yield the lines about one finding; `again` is the command that repeats a trial, without its plan."""
    folder = shlex.quote(str(reported.record.folder))
    revision = reported.finding.revision or reported.record.ended_at
    yield f"{number}. {reported.finding.message}  [{reported.finding.oracle}]"
    yield f"{_INDENT}perturbation: {reported.plan}"
    if reported.others:
        yield f"{_INDENT}{reported.others} other {'plans lead' if reported.others > 1 else 'plan leads'} to it as well"
    yield from _timeline(events, reported.record.user)
    if reported.plan.perturbations:
        yield f"{_INDENT}repeat it:  {again} --plan {shlex.quote(str(reported.plan_file))}"
    yield f"{_INDENT}its events: ctrlmgr events --data-dir {folder}"
    yield f"{_INDENT}its state:  ctrlmgr serve --data-dir {folder} --at {revision}"
    yield f"{_INDENT}its output: {folder}/operator.log"


def _timeline(events: Sequence[Event], user: str) -> Iterator[str]:
    for event in events:
        time = format_time(event.recorded_at)[11:23]
        actor = "operator" if event.actor == user else escape(event.actor)
        name = f"{escape(str(event.resource))} {escape(str(event.key))}"
        yield f"{_INDENT}{event.revision:>6}  {time}  {event.type.name:<8}  {name}  by {actor}"


def summary_lines(result: TrialResult, seconds: float) -> Iterator[str]:
    """Yield the last lines of a trial's output."""
    for each in result.unreached:
        yield f"note: not reached, because the operator did not send this request again: {each}"
    duration = timedelta(seconds=round(seconds))
    findings = f"{len(result.reported)} finding{'' if len(result.reported) == 1 else 's'}"
    yield f"{findings} in {result.runs} runs, {duration}; the operator made {result.writes} writes in a clean run"

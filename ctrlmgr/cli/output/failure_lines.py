"""Formats failing reconciles as a table, or as one line for each reconcile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctrlmgr.cli.output import aligned_columns
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.eventlog import Failure
from ctrlmgr.logging import escape

_HEADER = ("CONTROLLER", "OBJECT", "ATTEMPTS", "SINCE", "NEXT RETRY", "ERROR")
_ON_CHANGE = "on the next change"


def table(found: Sequence[Failure]) -> Iterator[str]:
    """Yield the lines of a table of failing reconciles."""
    yield from aligned_columns.lines(_HEADER, [_row(each) for each in found])


def with_tracebacks(found: Sequence[Failure]) -> Iterator[str]:
    """Yield one line per failing reconcile, followed by its traceback."""
    for each in found:
        yield line(each)
        yield from (f"    {escape(text)}" for text in each.traceback.splitlines())


def line(failure: Failure) -> str:
    """Return a failing reconcile as one line."""
    since, subject = format_time_seconds(failure.since), f"{failure.kind} {failure.key}".strip()
    text = f"{failure.controller} fails for {subject}: {_first_line(failure.error)}"
    return escape(f"{text} ({failure.attempts} attempts since {since}, next retry: {_next(failure)})")


def _row(failure: Failure) -> tuple[object, ...]:
    subject = f"{failure.kind}/{failure.key}" if failure.kind else failure.key
    since = format_time_seconds(failure.since)
    return (failure.controller, subject, failure.attempts, since, _next(failure), _first_line(failure.error))


def _next(failure: Failure) -> str:
    if failure.ended_at is not None:
        return f"none, ended {format_time_seconds(failure.ended_at)}"
    return _ON_CHANGE if failure.next_retry_at is None else format_time_seconds(failure.next_retry_at)


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""

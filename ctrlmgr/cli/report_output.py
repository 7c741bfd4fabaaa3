"""How `ctrlmgr replay` prints its report: a summary and readable differences for people, one document for machines.

Guarantees: colour only on a terminal; control characters in what the recording holds are printed as escapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from ctrlmgr.cli import ExitCode
from ctrlmgr.errors import RecordingError
from ctrlmgr.logging import escape
from ctrlmgr.recording.divergence import ABSENT, Divergence, Verdict
from ctrlmgr.recording.report import Report

_MOST = 20
"""Divergences printed in full for people; JSON has them all."""

_SAID = {
    Verdict.DIFFERS: "differs",
    Verdict.MISSING: "is in the recording and we do not have it",
    Verdict.UNEXPECTED: "is not in the recording and we have it",
    Verdict.RESTLESS: "did not become quiescent; the replay stopped here",
}


def write(report: Report, output: str, fault: RecordingError | None) -> None:
    """Print `report` to stdout as `output` says; `fault` is what ended the recording early, if anything did."""
    if output == "json":
        fields = {**report.as_json(), "recordingError": _fields(fault)}
        click.echo(msgspec.json.format(msgspec.json.encode(fields), indent=2))
        return
    for divergence in report.divergences[:_MOST]:
        for line in _divergence(divergence):
            click.echo(line)
        click.echo()
    if len(report.divergences) > _MOST:
        click.echo(f"… and {len(report.divergences) - _MOST:,} more divergences; -o json prints them all\n")
    for name, value in _summary(report):
        click.echo(f"{name:<12} {value}")


def complain(fault: RecordingError, report: Report, kept: str) -> ExitCode:
    """Say on stderr what is wrong with the recording and how far the replay came."""
    read = f"; what stands above was replayed, {report.events:,} events" if report.events else ""
    click.echo(f"error: {escape(str(fault))}{read}{', ' + escape(kept) if kept else ''}", err=True)
    return ExitCode.RECORDING


def _fields(fault: RecordingError | None) -> dict[str, Any] | None:
    return {"file": fault.file, "line": fault.line, "reason": fault.reason} if fault else None


def _summary(report: Report) -> Iterator[tuple[str, str]]:
    yield "recording", escape(report.file)
    yield "events", f"{report.events:,} in {report.seconds:.2f} s, {report.rate:,.0f}/s; {report.inputs:,} are inputs"
    yield "controllers", f"{report.reconciles:,} reconciles, {report.writes:,} writes"
    yield "checkpoints", f"{report.checkpoints:,}, {report.objects_compared:,} objects compared"
    count = f"{len(report.divergences):,}"
    yield "divergences", click.style(count, fg="red" if report.divergences else "green", bold=True)
    yield "head", f"revision {report.revision:,}, hash {report.hash}"


def _divergence(divergence: Divergence) -> Iterator[str]:
    lasted = f" and {divergence.checkpoints - 1} more" if divergence.checkpoints > 1 else ""
    title = click.style(escape(divergence.subject), bold=True)
    yield f"{title} {_SAID[divergence.verdict]}, at checkpoint {escape(divergence.checkpoint)}{lasted}:"
    for difference in divergence.differences:
        yield f"  {escape(difference.path)}"
        yield click.style(f"    - recorded  {_value(difference.recorded)}", fg="red")
        yield click.style(f"    + ours      {_value(difference.ours)}", fg="green")


def _value(value: Any) -> str:
    return ABSENT if value == ABSENT else escape(msgspec.json.encode(value).decode())

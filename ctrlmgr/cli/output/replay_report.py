"""Prints the report of `ctrlmgr replay`: a summary and the differences for users, or one document for programs.

Guarantees: the output is coloured only on a terminal. Control characters in the recording are printed as escape
sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click
import msgspec

from ctrlmgr.cli import ExitCode
from ctrlmgr.cli.output import terminal_documents
from ctrlmgr.errors import RecordingError
from ctrlmgr.logging import escape
from ctrlmgr.recording.object_comparison import ABSENT, Difference, Divergence, Verdict
from ctrlmgr.recording.report import Report
from ctrlmgr.recording.version_comparison import Comparison, DifferenceKind, WriteDifference

T = TypeVar("T")

_MOST = 20
"""The maximum number of divergences that are printed in full; the JSON report contains all divergences."""

_SAID = {
    Verdict.DIFFERS: "differs",
    Verdict.MISSING: "is missing: it is in the recording only",
    Verdict.UNEXPECTED: "is unexpected: it is not in the recording",
    Verdict.UNPAIRED: "was written in the recording, but not by our controllers",
    Verdict.RESTLESS: "did not become idle; the replay stopped here",
}

_DEPARTED = {
    DifferenceKind.DIFFERS: "is written differently",
    DifferenceKind.MISSING: "is written by the other version only",
    DifferenceKind.EXTRA: "is written by this version only",
    DifferenceKind.MOVED: "is written at another time",
}


def write(
    report: Report,
    output: str,
    fault: RecordingError | None,
    compared: Comparison | None = None,
    *,
    not_replayed: Sequence[str] = (),
) -> None:
    """Print `report` in the format `output`.

    `fault` is the error that ended the replay of the recording early; None if there was no error. `compared` is the
    result of the comparison with another version's replay. `not_replayed` contains the names of the enabled controllers
    that a replay cannot run.
    """
    if output != "table":
        fields = {**report.as_json(), "notReplayed": [*not_replayed], "recordingError": _fields(fault)}
        if compared is not None:
            fields["against"] = compared.as_json()
        _write_document(fields, output)
        return
    _write_some(report.divergences, _divergence, "divergences", output="json")
    for name, value in _summary(report):
        click.echo(f"{name:<12} {value}")
    if not_replayed:
        click.echo(f"{'skipped':<12} controllers that have no replay; -o json prints their names")
    if compared is not None:
        _write_comparison(compared)


def _write_document(fields: dict[str, Any], output: str) -> None:
    if output == "json":
        click.echo(terminal_documents.json_text(msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()))
    else:
        click.echo(terminal_documents.yaml_text(msgspec.to_builtins(fields)), nl=False)


def _write_some(found: Sequence[T], lines: Callable[[T], Iterator[str]], what: str, *, output: str) -> None:
    for each in found[:_MOST]:
        for line in lines(each):
            click.echo(line)
        click.echo()
    if len(found) > _MOST:
        click.echo(f"… and {len(found) - _MOST:,} more {what}; -o {output} prints them all\n")


def _write_comparison(compared: Comparison) -> None:
    click.echo()
    _write_some(compared.differences, _write_difference, "differences between the versions", output="json")
    count = len(compared.differences)
    inputs = f"{compared.inputs:,} in this version, {compared.other_inputs:,} in the other"
    click.echo(f"{'inputs':<12} {inputs}")
    writes = f"{compared.writes:,} in this version, {compared.other_writes:,} in the other, {compared.same:,} equal"
    click.echo(f"{'writes':<12} {writes}")
    click.echo(f"{'differences':<12} {click.style(f'{count:,}', fg='red' if count else 'green', bold=True)}")


def _write_difference(found: WriteDifference) -> Iterator[str]:
    title = click.style(escape(found.subject), bold=True)
    here = f"revision {found.revision}" if found.revision else ""
    there = f"revision {found.other_revision} of the other" if found.other_revision else ""
    where = ", ".join(part for part in (here, there) if part)
    yield f"{title} {_DEPARTED[found.verdict]}, after input {found.input:,} ({where})"
    yield from _difference_lines(found.differences, "other")


def complain(fault: RecordingError, report: Report, kept: str) -> ExitCode:
    """Print the error of the recording on stderr, and the revision that the replay has reached."""
    read = f"; {report.events:,} events before the error were replayed" if report.events else ""
    click.echo(f"error: {escape(str(fault))}{read}{', ' + escape(kept) if kept else ''}", err=True)
    return ExitCode.RECORDING


def _fields(fault: RecordingError | None) -> dict[str, Any] | None:
    return {"file": fault.file, "line": fault.line, "reason": fault.reason} if fault else None


def _summary(report: Report) -> Iterator[tuple[str, str]]:
    yield "recording", escape(report.file)
    yield "events", f"{report.events:,} in {report.seconds:.2f} s, {report.rate:,.0f}/s; {report.inputs:,} are inputs"
    yield "controllers", f"{report.reconciles:,} reconciles, {report.writes:,} writes"
    decisions = f", {report.decisions_compared:,} decisions of autoscalers" if report.decisions_compared else ""
    yield "checkpoints", f"{report.checkpoints:,}, {report.objects_compared:,} objects compared{decisions}"
    for number, paired in enumerate(report.paired):
        sentence = (
            f"{paired.paired:,} of {paired.recorded:,} recorded writes have a counterpart among our {paired.ours:,}"
        )
        yield "" if number else "every write", f"{escape(paired.resource)}: {sentence}"
    count = f"{len(report.divergences):,}"
    yield "divergences", click.style(count, fg="red" if report.divergences else "green", bold=True)
    for number, each in enumerate(report.unjudged):
        times = f"{each.count:,} times" if each.count > 1 else "once"
        yield "" if number else "unjudged", f"{escape(each.subject)}, {times}: {escape(each.reason)}"
    yield "head", f"revision {report.revision:,}, hash {report.hash}"


def _divergence(divergence: Divergence) -> Iterator[str]:
    lasted = f" and {divergence.checkpoints - 1} more" if divergence.checkpoints > 1 else ""
    title = click.style(escape(divergence.subject), bold=True)
    at = "" if divergence.verdict is Verdict.UNPAIRED else "checkpoint "
    yield f"{title} {_SAID[divergence.verdict]}, at {at}{escape(divergence.checkpoint)}{lasted}:"
    yield from _difference_lines(divergence.differences, "recorded")


def _difference_lines(found: Sequence[Difference], other: str) -> Iterator[str]:
    """Yield one line for each difference; `other` is the name of the side with which the replay is compared."""
    for difference in found:
        yield f"  {escape(difference.path)}"
        yield click.style(f"    - {other:<9} {_value(difference.recorded)}", fg="red")
        yield click.style(f"    + {'ours':<9} {_value(difference.ours)}", fg="green")


def _value(value: Any) -> str:
    return ABSENT if value == ABSENT else escape(msgspec.json.encode(value).decode())

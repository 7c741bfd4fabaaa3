"""Formats a rollout for users, with one line per step, and one line for each wait before a step.

Guarantees: the output is coloured only on a terminal. Control characters in stored values are printed as escape
sequences.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from ctrlmgr.cli.output import change_lines
from ctrlmgr.clock import format_time
from ctrlmgr.inspection.rollout_timeline import Rollout, Step
from ctrlmgr.logging import escape

_WIDEST = 60
"""The maximum number of characters that are printed of a value in a change of the template."""


def lines(found: Rollout) -> Iterator[str]:
    """Yield the lines of a rollout."""
    began = found.began
    subject = change_lines.subject(began.object.resource, began.object.key)
    verb = "template changed" if began.before is not None else "created"
    yield f"{subject} {verb} at revision {began.revision}, by {change_lines.written_by(began.author)}"
    for edit in found.edits:
        yield f"    {change_lines.difference_line(edit, widest=_WIDEST)}"
    for step in found.steps:
        if step.waited_for:
            yield _waited(step)
        yield f"{format_time(step.at)}  {step.revision:>7}  {escape(step.what)}"
    if found.is_complete:
        yield click.style("The rollout is complete.", fg="green")
    else:
        yield click.style(f"The rollout waits for {escape(found.waits_for) or 'its controller'}.", fg="yellow")


def _waited(step: Step) -> str:
    seconds = step.waited / 1_000_000
    return click.style(f"    {seconds:.1f} s for {escape(step.waited_for)}", fg="yellow")

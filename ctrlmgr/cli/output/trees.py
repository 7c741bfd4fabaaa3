"""How trees of causes and effects are drawn.

Guarantees: an event's line comes before what belongs to it; colour only on a terminal; control characters in what
others have written are printed as escapes.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from ctrlmgr.cli.output.change_lines import subject, told, written_by
from ctrlmgr.clock import format_time
from ctrlmgr.inspection.causes import ADMISSION, Node, Run
from ctrlmgr.inspection.differences import content, differences
from ctrlmgr.inspection.requests import Request
from ctrlmgr.inspection.secrecy import masked_sides
from ctrlmgr.logging import escape

_MOST = 4
_WIDEST = 80
"""Differences told of one change, and characters of a value; `ctrlmgr history` tells all."""


def causes(node: Node) -> Iterator[str]:
    """Yield an event, its changes, the reconcile that wrote it, and below that what the reconcile answered."""
    yield from _event(node)
    if node.request:
        yield f"└─ {_request(node.request)}"
    if node.run:
        is_asked = node.links or node.cut or node.run.controller == ADMISSION
        alone = "" if is_asked else "; nothing asked for it: a retry, or its time had come"
        yield f"└─ {_reconcile(node.run, node)}{alone}"
        for index, cause in enumerate(node.links):
            yield from _branch(causes(cause), last=index == len(node.links) - 1, indent="   ")


def effects(node: Node) -> Iterator[str]:
    """Yield an event and below it, reconcile by reconcile, what those wrote that answered it."""
    yield from _event(node)
    runs: dict[int, list[Node]] = {}
    for effect in node.links:
        runs.setdefault(effect.run.id if effect.run else 0, []).append(effect)
    for index, written in enumerate(runs.values()):
        is_last = index == len(runs) - 1
        run = written[0].run
        yield f"{'└─' if is_last else '├─'} {_reconcile(run, written[0]) if run else 'a reconcile'}"
        for number, effect in enumerate(written):
            indent = "   " if is_last else "│  "
            yield from _branch(effects(effect), last=number == len(written) - 1, indent=indent)


def _branch(lines: Iterator[str], *, last: bool, indent: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        mark = ("└─ " if last else "├─ ") if number == 0 else ("   " if last else "│  ")
        yield indent + mark + line


def _event(node: Node) -> Iterator[str]:
    change = node.change
    if change is None:
        yield f"{node.revision}  (compacted)"
        return
    which, by = subject(change.object.resource, change.object.key), written_by(change.author)
    yield f"{node.revision}  {which}  {change.type.name}  {format_time(change.recorded_at)}  {by}{_cut(node)}"
    sides = masked_sides(change.object.resource, content(change.before), content(change.object))
    found = list(differences(*sides)) if change.before else []
    bar = "│  " if node.run or node.links or node.request else "   "
    for difference in found[:_MOST]:
        yield f"{bar}{told(difference, widest=_WIDEST)}"
    if len(found) > _MOST:
        yield f"{bar}… and {len(found) - _MOST} more"


def _cut(node: Node) -> str:
    return {"": "", "repeated": "  (see above)", "too deep": "  (more with --depth)"}[node.cut]


def _request(request: Request) -> str:
    who = request.username + (f" for {request.acts_for}" if request.acts_for else "")
    source = f" from {escape(request.source)}" if request.source else ""
    what = f"{request.verb} {escape(request.uri)} by {escape(who)}{source}"
    return f"request {escape(request.id)}: {what}, {request.code}"


def _reconcile(run: Run, node: Node) -> str:
    if run.controller == ADMISSION:
        return f"changed on its way by {click.style(escape(run.key), bold=True)}"
    parts = [f"reconcile of {escape(run.key)} by {click.style(escape(run.controller), bold=True)}"]
    parts += [f"attempt {run.attempt}"] if run.attempt > 1 else []
    parts += [f"term {node.change.author.term}"] if node.change and node.change.author.term else []
    if run.outcome is None or run.duration is None:
        parts.append("not ended")
    else:
        parts.append(f"{escape(run.outcome)} in {run.duration / 1000:.3g} ms")
    return ", ".join(parts) + (f": {escape(run.message)}" if run.message else "")

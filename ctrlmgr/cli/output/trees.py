"""Draws trees of the causes or effects of changes.

Guarantees: the line of an event precedes the lines with its details. The output is coloured only on a terminal. Control
characters in stored values are printed as escape sequences. Causes are similar if the same author made the same change
to objects of one kind. Similar causes are drawn as one cause, and a repeated event is drawn without its changes. A
`whole` tree shows similar and repeated events in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from ctrlmgr.cli.output.change_lines import difference_line, subject, written_by
from ctrlmgr.clock import format_time
from ctrlmgr.inspection.audited_requests import Request
from ctrlmgr.inspection.causes import ADMISSION, Node, Run
from ctrlmgr.inspection.differences import Difference, content, differences
from ctrlmgr.inspection.historical_state import Change
from ctrlmgr.inspection.inferring.inference import Inference
from ctrlmgr.inspection.secret_redaction import masked_sides
from ctrlmgr.logging import escape

_MOST = 4
_WIDEST = 80
"""The maximum number of differences per change, and of characters per value; `ctrlmgr history` prints everything."""

_TIME = re.compile(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d')
"""Fields with timestamps, which may differ between similar changes."""

_NAMED = 2
"""The maximum number of object names that are printed for similar changes."""


def causes(node: Node, *, whole: bool = False) -> Iterator[str]:
    """Yield the lines of an event, its changes and its reconcile, and the events that triggered the reconcile."""
    return _causes([node], None if whole else set())


def _causes(alike: Sequence[Node], drawn: set[int] | None) -> Iterator[str]:
    """Draw similar causes as one cause, followed by the causes of the first of them.

    The set `drawn` contains the events that were already drawn.
    """
    node = alike[0]
    is_known = drawn is not None and node.revision in drawn
    if drawn is not None:
        drawn.update(each.revision for each in alike)
    if is_known and node.change is not None:
        yield _head([node], node.change) + ("" if node.cut else "  (see above)")
        return
    yield from _event(alike)
    if node.request:
        yield f"└─ {_request(node.request)}"
    groups = [[each] for each in node.links] if drawn is None else _grouped(node.links)
    if node.inferred:
        yield f"└─ {_inferred(node.inferred)}"
        for index, group in enumerate(groups):
            yield from _branch(_causes(group, drawn), last=index == len(groups) - 1, indent="   ")
    elif node.run:
        is_asked = node.links or node.cut or node.run.controller == ADMISSION
        alone = "" if is_asked else "; no event triggered it: a retry, or a timer"
        others = f" (and similar ones for {len(alike) - 1} more)" if len(alike) > 1 else ""
        yield f"└─ {_reconcile(node.run, node)}{alone}{others}"
        for index, group in enumerate(groups):
            yield from _branch(_causes(group, drawn), last=index == len(groups) - 1, indent="   ")


def _grouped(links: Sequence[Node]) -> list[list[Node]]:
    """Return groups of similar causes, in the order of the first cause of each group."""
    groups: dict[object, list[Node]] = {}
    for each in links:
        groups.setdefault(_likeness(each), []).append(each)
    return list(groups.values())


def _likeness(node: Node) -> object:
    """Return the properties that are equal in similar causes: all except object, time, and their own causes."""
    change = node.change
    if change is None:
        return node.revision
    texts = tuple(
        text for each in _differences(change) if not _TIME.search(text := difference_line(each, widest=_WIDEST))
    )
    controller = node.run.controller if node.run else ""
    place = (change.object.resource, change.object.namespace)
    because = node.because.replace(change.object.name, "")
    return (place, change.type, change.author.actor, controller, texts, node.request, node.cut, because)


def effects(node: Node) -> Iterator[str]:
    """Yield the lines of an event, and below that line each reconcile that the event triggered, with its writes."""
    yield from _event([node])
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


def _event(alike: Sequence[Node]) -> Iterator[str]:
    node = alike[0]
    change = node.change
    if change is None:
        yield f"{node.revision}  (compacted)"
        return
    yield _head(alike, change) + _cut(node)
    found = _differences(change)
    bar = "│  " if node.run or node.links or node.request or node.inferred else "   "
    if node.because:
        yield f"{bar}{click.style('inferred', fg='magenta')}: {escape(node.because)}"
    for difference in found[:_MOST]:
        yield f"{bar}{difference_line(difference, widest=_WIDEST)}"
    if len(found) > _MOST:
        yield f"{bar}… and {len(found) - _MOST} more"


def _head(alike: Sequence[Node], change: Change) -> str:
    """Return one line for an event, or for several similar events: the number of events and the first names."""
    node, by = alike[0], written_by(change.author)
    rest = f"{change.type.name}  {format_time(change.recorded_at)}  {by}"
    objects = dict.fromkeys(each.change.object.key for each in alike if each.change is not None)
    if len(objects) < 2:
        times = f"{len(alike)} times  " if len(alike) > 1 else ""
        return f"{node.revision}  {subject(change.object.resource, change.object.key)}  {times}{rest}"
    names = [escape(key.name) for key in objects]
    more = f" … +{len(names) - _NAMED}" if len(names) > _NAMED else ""
    where = f" in {escape(change.object.namespace)}" if change.object.namespace else ""
    which = f"{len(names)} {change.object.resource}{where}: {', '.join(names[:_NAMED])}{more}"
    return f"{node.revision}  {click.style(which, bold=True)}  {rest}"


def _differences(change: Change) -> list[Difference]:
    if not change.before:
        return []
    sides = masked_sides(change.object.resource, content(change.before), content(change.object))
    return list(differences(*sides))


def _cut(node: Node) -> str:
    return {"": "", "repeated": "  (see above)", "too deep": "  (deeper causes: --depth)"}[node.cut]


def _inferred(inference: Inference) -> str:
    controller = click.style(escape(inference.controller), bold=True)
    suffix = "" if inference.causes else "; its cause is unknown"
    return f"{click.style('inferred', fg='magenta')}: by {controller}, because {escape(inference.reason)}{suffix}"


def _request(request: Request) -> str:
    who = request.username + (f" for {request.acts_for}" if request.acts_for else "")
    source = f" from {escape(request.source)}" if request.source else ""
    what = f"{request.verb} {escape(request.uri)} by {escape(who)}{source}"
    return f"request {escape(request.id)}: {what}, {request.code}"


def _reconcile(run: Run, node: Node) -> str:
    if run.controller == ADMISSION:
        return f"changed during admission by {click.style(escape(run.key), bold=True)}"
    parts = [f"reconcile of {escape(run.key)} by {click.style(escape(run.controller), bold=True)}"]
    parts += [f"attempt {run.attempt}"] if run.attempt > 1 else []
    parts += [f"term {node.change.author.term}"] if node.change and node.change.author.term else []
    if run.outcome is None or run.duration is None:
        parts.append("not finished")
    else:
        parts.append(f"{escape(run.outcome)} in {run.duration / 1000:.3g} ms")
    return ", ".join(parts) + (f": {escape(run.message)}" if run.message else "")

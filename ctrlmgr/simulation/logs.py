"""What the containers of a pod on a simulated node have written.

Guarantees: the same lines each time, by the same rules as the pod's status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ctrlmgr.simulation.life import live
from ctrlmgr.simulation.runs import End


class Wanted(NamedTuple):
    """Which lines are wanted, as of the query of `pods/NAME/log`."""

    container: str = ""
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: float | None = None
    """Only lines of the last so many seconds."""
    limit: int | None = None
    """No more than so many bytes."""


def log_of(
    pod: Mapping[str, Any],
    asked: Callable[[Mapping[str, Any]], Any],
    now: float,
    end: End | None,
    clock: Callable[[float], str],
    wanted: Wanted,
) -> str:
    """Return what a container has written; raises LookupError, with a word for who asks, if there is nothing."""
    life = live(pod, asked, now, end)
    found = next((each for each in (*life.init, *life.main) if each.name == wanted.container), None)
    if found is None:
        raise LookupError(f"container {wanted.container} is not valid for pod {pod['metadata']['name']}")
    spans = [each for each in found.spans if each.start <= now]
    at = len(spans) - 2 if wanted.previous else len(spans) - 1
    if at < 0:
        kind = "previous terminated container" if wanted.previous else "container"
        name = pod["metadata"]["name"]
        if wanted.previous:
            raise LookupError(f'{kind} "{wanted.container}" in pod "{name}" not found')
        raise LookupError(f'{kind} "{wanted.container}" in pod "{name}" is waiting to start: {found.waits_for}')
    lines = spans[at].lines(now)
    if wanted.since is not None:
        lines = [each for each in lines if each.at >= now - wanted.since]
    if wanted.tail is not None:
        lines = lines[len(lines) - wanted.tail :] if wanted.tail < len(lines) else lines
    text = "".join(f"{clock(each.at) + ' ' if wanted.timestamps else ''}{each.written}" for each in lines)
    return text if wanted.limit is None else text.encode()[: wanted.limit].decode(errors="ignore")

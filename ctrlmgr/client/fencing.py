"""Fences for a reconcile: it writes in the term in which it began, or not at all.

Guarantees: a controller still at work when its term is over and another has begun in the same process is refused too,
before the log has to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ctrlmgr.errors import Fenced
from ctrlmgr.eventlog.event import Fence

Fencing: TypeAlias = Callable[[], Fence | None]
"""Returns what an append carries now; raises `Fenced` when nothing may be written."""


def pinned(fencing: Fencing | None) -> Fencing | None:
    """Return the same for one reconcile, which raises `Fenced` once there is another fence; raises it at once, too."""
    if fencing is None:
        return None
    first = fencing()

    def same() -> Fence | None:
        now = fencing()
        if now != first:
            raise Fenced("the term in which this reconcile began is over")
        return now

    return same

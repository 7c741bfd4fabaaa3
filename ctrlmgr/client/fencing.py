"""Fences of a reconcile: all writes of the reconcile belong to the leader's term in which the reconcile began.

Guarantees: if one term ends and another term begins in one process, no write of a reconcile of the old term reaches the
log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ctrlmgr.errors import Fenced
from ctrlmgr.eventlog.event import Fence

Fencing: TypeAlias = Callable[[], Fence | None]
"""The type of a function that returns the fence for the next append; raises `Fenced` if this process must not write."""


def pinned(fencing: Fencing | None) -> Fencing | None:
    """Return the `Fencing` of one reconcile; it raises `Fenced` if the fence has changed since this call.

    `pinned` itself raises `Fenced` if this process does not lead.
    """
    if fencing is None:
        return None
    first = fencing()

    def same() -> Fence | None:
        now = fencing()
        if now != first:
            raise Fenced("the leader's term in which this reconcile started has ended")
        return now

    return same

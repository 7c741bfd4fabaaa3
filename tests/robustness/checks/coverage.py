"""Checks that a run has tested enough, because a run in which little happened proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from tests.robustness.histories.history import BOOKMARK, ERROR, NEVER, SECOND, Delivery, History


def acknowledged_rate(history: History) -> float:
    """Return the acknowledged writes per second before the first fault."""
    ends = min((fault.began for fault in history.faults), default=NEVER)
    moments = [write.returned for write in history.writes if write.acknowledged and write.returned < ends]
    return len(moments) * SECOND / (max(moments) - history.began) if moments else 0.0


def gaps(history: History, *, rate: float) -> Iterator[str]:
    """Yield the features that a run has not tested; before the first fault, the run must have had `rate` acknowledged
    writes a second.
    """
    reached = acknowledged_rate(history)
    if reached < rate:
        yield f"only {reached:.0f} writes a second were acknowledged before the first fault, not {rate:.0f}"
    for what, count in _counted(history).items():
        if not count:
            yield f"there was no {what}"


def _counted(history: History) -> dict[str, int]:
    told = list(chain.from_iterable(watch.deliveries for watch in history.watches))
    pages = list(chain.from_iterable(read.pages for read in history.reads))
    verbs = {
        f"acknowledged {verb}": sum(write.verb == verb and write.acknowledged for write in history.writes)
        for verb in ("create", "update", "patch", "delete")
    }
    return {
        **verbs,
        "conflict": sum(write.code == 409 for write in history.writes),
        "object that left a selection": _left(history, told),
        "bookmark": sum(each.type == BOOKMARK for each in told),
        "end of initial events": sum(each.initial_end for each in told),
        "watch of the forgotten": sum(each.type == ERROR and each.revision == 410 for each in told),
        "list of several pages": sum(len(read.pages) > 1 for read in history.reads),
        "read of the future refused": sum(page.code == 504 for page in pages),
        "exact read": sum(read.match == "Exact" and read.pages[-1:] != [] for read in history.reads),
        "compaction": len(history.compactions),
    }


def _left(history: History, told: Iterable[Delivery]) -> int:
    """Count the objects that stopped matching a selection without being deleted."""
    types = {event.revision: event.type for event in history.log}
    return sum(each.type == "DELETED" and types.get(each.revision) == "MODIFIED" for each in told)

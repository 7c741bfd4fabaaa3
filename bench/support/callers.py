"""Callers of a log: each caller appends in a loop, and waits for each acknowledgement before the next append."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue

from ctrlmgr.eventlog import Appending, Author, EventLog, Proposal

AUTHOR = Author("system:controller:bench", "ctrlmgr/bench")

Work = Sequence[Sequence[Proposal]]
"""The appends of each caller; each append contains one proposal."""

Run = Callable[[EventLog, Work], None]


def on_a_loop(log: EventLog, work: Work) -> None:
    """Run all callers on this thread, like a server's handlers on its event loop."""
    ended: SimpleQueue[Appending] = SimpleQueue()
    callers: dict[Appending, Iterator[Proposal]] = {}

    def append(caller: Iterator[Proposal]) -> None:
        if proposal := next(caller, None):
            pending = log.submit([proposal], author=AUTHOR)
            callers[pending] = caller
            pending.add_done_callback(ended.put)

    for proposals in work:
        append(iter(proposals))
    while callers:
        pending = ended.get()
        pending.result()
        append(callers.pop(pending))


def on_threads(log: EventLog, work: Work) -> None:
    """Run each caller on its own thread."""

    def append(proposals: Sequence[Proposal]) -> None:
        for proposal in proposals:
            log.append([proposal], author=AUTHOR)

    callers = [threading.Thread(target=append, args=(proposals,)) for proposals in work]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()


def rate(log: EventLog, work: Work, run: Run) -> float:
    """Run the callers; return appends per second."""
    began = time.perf_counter()
    run(log, work)
    return sum(map(len, work)) / (time.perf_counter() - began)

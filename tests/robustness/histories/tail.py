"""Reads the event log during a run, so that all its events are known even after compactions removed events."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ctrlmgr.api.object import Object
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog import Event, open_log
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.eventlog.verification import verify
from tests.robustness.histories.history import Logged, digest_of

AGENT = "robustness/"
"""The prefix of the user agent with which a write is sent; the ID of the write follows."""

_BATCH = 1000


class Tail:
    """A reader of one log, which also compacts the log; only the method `wait` is thread-safe."""

    def __init__(self, url: str, folder: Path) -> None:
        log = open_log(url, clock=SystemClock(), random=random.Random(1), anchor=folder / "tail-anchor")
        assert not isinstance(log, MemoryEventLog)
        self._log = log
        self._turn = threading.Lock()
        self.log: list[Logged] = []

    @property
    def head(self) -> int:
        """The newest revision that was read."""
        return self.log[-1].revision if self.log else 0

    def read(self) -> None:
        """Read new events; if the database is unavailable, the next call of this method reads the events."""
        with self._turn:
            try:
                while events := self._log.events_after(self.head, limit=_BATCH):
                    self.log.extend(map(logged, events))
            except LogUnavailable:
                return

    def compact(self, before: int) -> None:
        """Compact the events up to a revision that later events supersede."""
        self.read()
        with self._turn:
            self._log.compact(min(before, self.head))

    def verify(self) -> None:
        """Verify the hashes of the events that remain; raises `LogCorrupt` if a hash is wrong."""
        with self._turn:
            verify(self._log)

    def retained(self) -> list[Logged]:
        """Return the events that the log still contains."""
        with self._turn:
            return [logged(event) for event in self._log.scan()]

    def violations(self, judge: Callable[[Sequence[Event]], Iterator[str]]) -> list[str]:
        """Call a function with the events that the log still contains, and return the function's result."""
        with self._turn:
            return list(judge(list(self._log.scan())))

    def close(self) -> None:
        self._log.close()


def logged(event: Event) -> Logged:
    """Return an event in the form in which a history stores it."""
    obj: Object = event.object
    agent = event.user_agent
    return Logged(
        event.revision,
        event.previous,
        event.type.name,
        str(obj.resource),
        obj.namespace,
        obj.name,
        obj.uid,
        dict(obj.labels),
        digest_of(obj.to_dict()),
        agent.removeprefix(AGENT) if agent.startswith(AGENT) else "",
    )

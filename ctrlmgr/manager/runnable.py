"""Runnables, and the manager that starts and stops them.

Guarantees:
- Phases start in ascending order: a runnable starts when all runnables of lower phases have started and synced.
- Phases stop in descending order: a runnable is stopped when all runnables of higher phases have ended, or when the
  grace period of these phases is over. Therefore a runnable can use the log and the caches until the runnable has
  ended.
- The first error of a runnable stops all runnables, and `Manager.run` raises the error.
- The process always ends, because each phase has `grace` seconds to stop; the error names runnables that do not stop in
  time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Protocol, runtime_checkable

import structlog

from ctrlmgr import threads
from ctrlmgr.clock import Clock

log = structlog.get_logger(__name__)

_LOOK_AGAIN = 0.05
"""Seconds between checks of `has_synced`, because a runnable does not notify the manager when it has synced."""


GRACE: Final = 30.0
"""Seconds that each phase has to stop, by default."""


class Phase(IntEnum):
    """The phases in which runnables start; a runnable may use the runnables of earlier phases."""

    LOG = 0
    CACHES = 1
    SERVERS = 2
    MEMBERS = 3
    """Runnables that run in every process, whether it is the leader or not."""
    LEADER = 4


class Runnable(Protocol):
    """A component that runs until it is stopped."""

    @property
    def name(self) -> str:
        """The name of the runnable's thread; log lines contain this name, too."""

    def run(self, stop: threading.Event) -> None:
        """Do the work of this runnable until `stop` is set.

        If `run` raises an error, the manager stops. If `run` returns before `stop` is set, all other runnables
        continue. The event `stop` belongs to this runnable, which may set the event itself to wake its own threads.
        """


@runtime_checkable
class HasSynced(Protocol):
    """A runnable that other runnables can use only after it has synced."""

    def has_synced(self) -> bool:
        """Return whether the next phase may start; after the method has returned True, it always returns True."""


@dataclass(eq=False, slots=True)
class _Started:
    runnable: Runnable
    stop: threading.Event = field(default_factory=threading.Event)
    ended: bool = False


class Manager:
    """Starts runnables phase by phase, and stops the phases in reverse order."""

    def __init__(self, *, clock: Clock, grace: float = GRACE) -> None:
        """Create a manager that allows each phase `grace` seconds to stop."""
        self._clock = clock
        self._grace = grace
        self._phases: dict[Phase, list[Runnable]] = {phase: [] for phase in Phase}
        self._running = False
        # This condition guards the attributes below and every `_Started.ended`; it is notified when a runnable has
        # ended.
        self._changed = threading.Condition()
        # The first error of a runnable, which `run` raises.
        self._error: BaseException | None = None

    def add(self, runnable: Runnable, phase: Phase) -> None:
        """Add `runnable` to `phase`; raises RuntimeError if the manager is already running."""
        if self._running:
            raise RuntimeError(f"{runnable.name} was added to a running manager")
        self._phases[phase].append(runnable)

    def run(self, stop: threading.Event) -> None:
        """Run all runnables until `stop` is set; a runnable that fails sets `stop`.

        Raises the first error of a runnable, or `TimeoutError` with the names of the runnables that did not stop in
        time.
        """
        self._running = True
        started: list[list[_Started]] = []
        try:
            for phase in Phase:
                if stop.is_set():
                    break
                started.append(self._start(phase, stop))
            stop.wait()
        finally:
            stuck = [name for members in reversed(started) for name in self._stop(members)]
        self._report(stuck)

    def _start(self, phase: Phase, stop: threading.Event) -> list[_Started]:
        """Start a phase, and wait until all its runnables have synced or ended, or until `stop` is set."""
        members = [_Started(runnable) for runnable in self._phases[phase]]
        for member in members:
            threads.start(member.runnable.name, self._target(member, stop))
        with self._changed:
            while not stop.is_set() and not all(member.ended or _has_synced(member.runnable) for member in members):
                self._clock.wait(self._changed, _LOOK_AGAIN)
        log.debug("phase started", phase=phase.name.lower(), runnables=[member.runnable.name for member in members])
        return members

    def _target(self, member: _Started, stop: threading.Event) -> Callable[[], None]:
        def target() -> None:
            error: BaseException | None = None
            try:
                member.runnable.run(member.stop)
            except BaseException as raised:
                # Any error of a runnable stops the manager; it is raised on the manager's thread.
                error = raised
            with self._changed:
                member.ended = True
                self._changed.notify_all()
                first = error is not None and self._error is None
                if first:
                    self._error = error
            if error is not None:
                if not first:
                    log.error("another runnable failed", runnable=member.runnable.name, exc_info=error)
                stop.set()

        return target

    def _stop(self, members: Iterable[_Started]) -> list[str]:
        """Stop one phase; return the names of runnables that still run after its grace period."""
        for member in members:
            member.stop.set()
        give_up_at = self._clock.monotonic() + self._grace
        with self._changed:
            while stuck := [member.runnable.name for member in members if not member.ended]:
                left = give_up_at - self._clock.monotonic()
                if left <= 0 or not self._clock.wait(self._changed, left):
                    break
        return stuck

    def _report(self, stuck: list[str]) -> None:
        message = f"did not stop within {self._grace:g} s: {', '.join(stuck)}"
        with self._changed:
            error = self._error
        if error is None and stuck:
            raise TimeoutError(message)
        if error is not None:
            if stuck:
                error.add_note(message)
            raise error


def _has_synced(runnable: Runnable) -> bool:
    return not isinstance(runnable, HasSynced) or runnable.has_synced()

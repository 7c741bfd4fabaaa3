"""Runs daemons: tasks that run as long as an object exists, as generators that yield the seconds to sleep.

Guarantees:

- A daemon runs until its object is deleted, its function returns, or its controller stops. If the generator has not
  returned when its daemon ends, `GeneratorExit` is raised at its `yield`, so that `finally` can clean up. A daemon does
  not occupy a thread while it sleeps. Tests run a daemon step by step, with their own clock.
- Changes of the object do not end a daemon's sleep. Each `yield` returns the current object.
- A daemon that raises an exception is started again from its beginning after a backoff.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from ctrlmgr.framework.reconcile_context import Context
from ctrlmgr.manager.reconcile_result import Result

_SECOND: Final = 1_000_000

Steps = Generator[float, Any, None]


@dataclass(slots=True)
class Daemon:
    """The daemon of one object."""

    uid: str
    """The uid of the daemon's object."""
    steps: Steps | None
    """The generator that is running; None if the generator has returned."""
    context: Context
    due: int = 0
    """The time when the daemon's sleep ends, in microseconds since 1970."""

    def wait(self, uid: str, now: int) -> Result | None:
        """Return a `Result` with the remaining sleep, or `Result(None)` if the daemon has returned.

        Return None if the caller must now start the daemon, or run it to its next `yield`.
        """
        if uid != self.uid:
            return None
        if self.steps is None:
            return Result()
        return Result(requeue_after=(self.due - now) / _SECOND) if now < self.due else None

    def step(self, obj: Any, context: Context, *, where: str) -> Result | None:
        """Run the daemon up to its next `yield`; raises the errors that the daemon raises."""
        assert self.steps is not None, "a daemon that has returned is not stepped"
        is_first = context is self.context
        self.context.continue_as(context)
        try:
            seconds = next(self.steps) if is_first else self.steps.send(obj)
        except StopIteration:
            self.steps = None
            return None
        if not _is_pause(seconds):
            self.stop()
            raise TypeError(f"{where} yielded {seconds!r}, not the seconds to sleep")
        self.due = context.now() + round(seconds * _SECOND)
        return Result(requeue_after=float(seconds))

    def stop(self) -> None:
        """Let the daemon clean up and end; errors that it raises are logged."""
        steps, self.steps = self.steps, None
        try:
            if steps is not None:
                steps.close()
        except Exception as error:
            self.context.log.error("daemon failed to stop", exc_info=error)


def _is_pause(seconds: Any) -> bool:
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < math.inf


def begin(function: Callable[[Any, Context], Any], obj: Any, context: Context, uid: str) -> Daemon:
    """Return a new daemon for an object; the generator has not run yet."""
    return Daemon(uid, function(obj, context), context)

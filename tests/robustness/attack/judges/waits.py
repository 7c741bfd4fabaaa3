"""Checks how long a second client waits while a server is attacked.

Guarantees:
- A GET or a write of 100 KB may wait for the server for at most the seconds in `SLOWEST`. If a GET or a write took
  longer than the seconds in `QUIET` before the attack, the limit is increased in proportion.
- A busy machine alone causes no violation. After a long wait of the second client, the inputs that were sent during
  this wait are sent again, alone, when the second client no longer has long waits. The wait is a violation if the
  second client waits too long each of `TRIES` times.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from tests.robustness.attack.inputs import Input
from tests.robustness.attack.judges.second_client import GET, WRITE, Measurement
from tests.robustness.hostile.raw import PATIENCE

SLOWEST = {GET: 0.25, WRITE: 0.25}
QUIET = {GET: 0.02, WRITE: 0.05}
"""Seconds."""

TRIES = 3
_ROUND = 6
"""A number of observations that is large enough to include GETs and writes which began after the last response to an
input.
"""

_BEFORE = 1.0
"""Maximum seconds between the beginning of an input and the beginning of an observation that the input delays."""


class WaitJudge:
    """The judge of the second client's waits; see the module's docstring."""

    def __init__(
        self,
        quiet: Mapping[str, Measurement],
        send: Callable[[Input], object],
        next_look: Callable[[float], Measurement | None],
    ) -> None:
        """Derive the limits from `quiet`, the slowest observations of a server without load.

        `send` sends an input and returns when the response has arrived. `next_look` returns the next finished
        observation, or None after a timeout in seconds.
        """
        self.allowed = {what: SLOWEST[what] * max(quiet[what].waited / usual, 1.0) for what, usual in QUIET.items()}
        self.complaints: list[str] = []
        self.passing = 0
        """The number of long waits that did not occur again."""
        self._send = send
        self._next_look = next_look
        self._asked = deque[tuple[float, Input]](maxlen=20)

    def ask(self, given: Input) -> None:
        """Record that an input is about to be sent."""
        self._asked.append((time.monotonic(), given))

    def judge(self) -> None:
        """Check the observations that have ended since the last call."""
        while (look := self._next_look(0.0)) is not None:
            if self._is_long(look):
                self._try_again(look)

    def judge_last(self) -> None:
        """Check the observations that were made during the last inputs."""
        for look in self._round():
            if self._is_long(look):
                self._try_again(look)

    def _try_again(self, look: Measurement) -> None:
        """Report an observation if the second client waits too long again when the inputs of that time are repeated."""
        begins, ends = look.ended_at - look.took - _BEFORE, look.ended_at
        inputs = [given for at, given in self._asked if begins <= at <= ends]
        if not inputs or not self._waits_again(inputs):
            self.passing += 1
            return
        figures = f"waited {look.waited:.3f} s; {self.allowed[look.what]:.3f} may be"
        self.complaints.append(f"the {look.what} of another client {figures}; asked was {_shown(inputs)}")

    def _waits_again(self, inputs: Sequence[Input]) -> bool:
        return all(self._waits_once_more(inputs) for _ in range(TRIES))

    def _waits_once_more(self, inputs: Sequence[Input]) -> bool:
        if not self._becomes_quiet():
            return False
        for each in inputs:
            self._send(each)
        return any(self._is_long(each) for each in self._round())

    def _becomes_quiet(self) -> bool:
        """Wait until the second client has no long waits; return False if this takes too long."""
        ends_at = time.monotonic() + PATIENCE
        while time.monotonic() < ends_at:
            if not any(self._is_long(each) for each in self._round()):
                return True
        return False

    def _round(self) -> list[Measurement]:
        """Return the finished observations and the next `_ROUND` observations."""
        ended = list[Measurement]()
        while (look := self._next_look(0.0)) is not None:
            ended.append(look)
        return ended + [look for _ in range(_ROUND) if (look := self._next_look(PATIENCE)) is not None]

    def _is_long(self, look: Measurement) -> bool:
        return look.waited > self.allowed[look.what]


def _shown(inputs: Sequence[Input]) -> str:
    last = inputs[-1]
    before = ", ".join(f"{each.family} {each.shape}".strip() for each in inputs[:-1])
    shown = f"{last.family}, {last.shape}: {last.path[:200]} {last.body[:100]!r}"
    return f"{shown} after {before}" if before else shown

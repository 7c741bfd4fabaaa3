"""What another server has said, believed for a while.

Guarantees: an answer is given as long as was said when it was kept, and not a moment longer; of more than `most` those
kept longest ago go.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

from ctrlmgr.clock import Clock

A = TypeVar("A")


class _Said(NamedTuple, Generic[A]):
    answer: A
    until: float


class Believed(Generic[A]):
    """Answers by question; kept by one thread, looked up by any."""

    def __init__(self, most: int, *, clock: Clock) -> None:
        """Keep so many; `clock` says how long they have been here."""
        self._most = most
        self._clock = clock
        self._said: OrderedDict[bytes, _Said[A]] = OrderedDict()

    def get(self, question: bytes) -> A | None:
        """Return the answer that is still believed, None if there is none."""
        said = self._said.get(question)
        return said.answer if said is not None and said.until > self._clock.monotonic() else None

    def keep(self, question: bytes, answer: A, seconds: float) -> None:
        """Believe an answer for so many seconds from now."""
        self._said[question] = _Said(answer, self._clock.monotonic() + seconds)
        self._said.move_to_end(question)
        if len(self._said) > self._most:
            self._said.popitem(last=False)

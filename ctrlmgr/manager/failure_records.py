"""Records failing keys of a controller in the log: one record per key, from its first failure to its next success.

Guarantees:
- Only failures that need attention are recorded. A lost race or a temporarily unavailable database is not recorded
  (`is_expected`).
- A failed reconcile writes at most one row, together with other writes, and does not wait for the write.
- A controller that starts reads the records of the previous process, and reconciles the keys of these records again.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec

from ctrlmgr.api.resource import Key
from ctrlmgr.errors import CtrlmgrError, LogClosed, OutcomeUnknown
from ctrlmgr.eventlog import EventLog, Failure

Place: TypeAlias = tuple[type[Exception], tuple[tuple[str, int], ...]]

_LONGEST_ERROR: Final = 2_000
_LONGEST_TRACEBACK: Final = 8_000
"""The maximum number of characters of an error's beginning, and of a traceback's end, that a record contains."""


def is_expected(error: Exception) -> bool:
    """Return whether an error is expected: another writer was first, or the database is unavailable."""
    if isinstance(error, OutcomeUnknown):
        return True  # The next reconcile finds out whether the write took effect.
    return isinstance(error, CtrlmgrError) and (error.retryable or error.lost_race)


def summary(error: Exception) -> str:
    """Return the class name and the message of an error."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class Failures:
    """The failing keys of one controller. Only one worker at a time may process a key."""

    def __init__(self, controller: str, kind: str, log: EventLog, now: Callable[[], int]) -> None:
        """Create a recorder that writes to `log`.

        `now` returns microseconds since 1970, and `kind` is the kind of the keys, or empty if the kind is unknown.
        """
        self._controller = controller
        self._kind = kind
        self._log = log
        self._now = now
        self._failing: dict[Key, Failure] = {}
        self._traceback = ""  # The newest traceback; if tracebacks are equal, the string is shared.
        self._repeats: dict[
            Key, tuple[Place, int]
        ] = {}  # For each failing key: where it failed, and how often it has failed there since then.

    def take_over(self) -> Iterator[Key]:
        """Yield the keys that were failing when the controller last ran, in this or another process."""
        for each in self._log.failures():
            if each.controller == self._controller and each.ended_at is None:
                self._failing[key := Key.parse(each.key)] = each
                yield key

    def failed(self, key: Key, error: Exception, delay: float | None) -> None:
        """Record a failed reconcile.

        `delay` is the number of seconds until the retry. If the key is not retried before its next change, `delay` is
        None.
        """
        if is_expected(error):
            return
        now, known = self._now(), self._failing.get(key)
        text = _storable("".join(traceback.format_exception(error))[-_LONGEST_TRACEBACK:])
        if text != self._traceback:
            self._traceback = text
        failure = self._failing[key] = Failure(
            controller=self._controller,
            key=str(key),
            since=now if known is None else known.since,
            last_at=now,
            attempts=1 if known is None else known.attempts + 1,
            kind=self._kind,
            error=_storable(summary(error)[:_LONGEST_ERROR]),
            traceback=self._traceback,
            next_retry_at=None if delay is None else now + round(delay * 1_000_000),
        )
        self._record(failure)

    def repeats(self, key: Key, error: Exception) -> int:
        """Return how often a key has failed with the same traceback since its last success in this process."""
        place = _place(error)
        before, count = self._repeats.get(key, (place, -1))
        count = count + 1 if before == place else 0
        self._repeats[key] = place, count
        return count

    def succeeded(self, key: Key) -> None:
        """Record that a key succeeded, if the key was failing."""
        self._repeats.pop(key, None)
        if self._failing and (known := self._failing.pop(key, None)):
            self._record(msgspec.structs.replace(known, ended_at=self._now(), next_retry_at=None))

    def _record(self, failure: Failure) -> None:
        try:
            self._log.record_failure(failure)
        except LogClosed:
            return  # The process ends, and the next process detects the failure again.


def _place(error: Exception) -> Place:
    """Return the type of an error and the code lines in its traceback, by which repeated errors are recognized.

    The message of the error is not included, because it may differ each time.
    """
    frames = traceback.walk_tb(error.__traceback__)
    return type(error), tuple((frame.f_code.co_filename, line) for frame, line in frames)


def _storable(text: str) -> str:
    """Return a string without the characters that databases cannot store."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()

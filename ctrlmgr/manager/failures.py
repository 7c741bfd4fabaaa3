"""Records in the log which keys of a controller fail: one record for each, from its first failure to its next success.

Guarantees:
- Only what needs a person is recorded. A lost race, and a database that is away for a while, are not (`is_expected`).
- A failed reconcile writes one row at most, in a group with other writes, and nothing waits for it.
- A controller that starts takes over the records of the process before it, and looks at those keys again.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from ctrlmgr.api.resource import Key
from ctrlmgr.errors import CtrlmgrError, LogClosed, OutcomeUnknown
from ctrlmgr.eventlog import EventLog, Failure

_LONGEST_ERROR: Final = 2_000
_LONGEST_TRACEBACK: Final = 8_000
"""Characters that are kept: of an error its beginning, of a traceback its end."""


def is_expected(error: Exception) -> bool:
    """Whether an error says nothing against the reconciler: another writer was first, or the database is away."""
    if isinstance(error, OutcomeUnknown):
        return True  # the next reconcile sees what came of it
    return isinstance(error, CtrlmgrError) and (error.retryable or error.lost_race)


def summary(error: Exception) -> str:
    """Return the class and the text of an error."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class Failures:
    """The failures of one controller; a key is with one worker at a time."""

    def __init__(self, controller: str, kind: str, log: EventLog, now: Callable[[], int]) -> None:
        """Record in `log`; `now` returns microseconds since 1970, and `kind` is what the keys are of, if known."""
        self._controller = controller
        self._kind = kind
        self._log = log
        self._now = now
        self._failing: dict[Key, Failure] = {}
        self._traceback = ""  # the newest: keys that fail alike share the text

    def take_over(self) -> Iterator[Key]:
        """Yield the keys that failed when the controller ran last, wherever that was."""
        for each in self._log.failures():
            if each.controller == self._controller and each.ended_at is None:
                self._failing[key := Key.parse(each.key)] = each
                yield key

    def failed(self, key: Key, error: Exception, delay: float | None) -> None:
        """Record that a reconcile has failed; the next attempt is in `delay` seconds, or (None) at the next change."""
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

    def succeeded(self, key: Key) -> None:
        """Record that a key no longer fails, if it did."""
        if self._failing and (known := self._failing.pop(key, None)):
            self._record(msgspec.structs.replace(known, ended_at=self._now(), next_retry_at=None))

    def _record(self, failure: Failure) -> None:
        try:
            self._log.record_failure(failure)
        except LogClosed:
            return  # the process ends, and the one after it meets the failure anew


def _storable(text: str) -> str:
    """Replace what no database can hold as text."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()

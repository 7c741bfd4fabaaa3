"""Reads failing reconciles from the log's records: when each began to fail, and with which errors.

Guarantees: one record describes all failed reconciles of a key from the first failure to the next success, and contains
the newest error. The log keeps the newest `eventlog.event.FAILURES_KEPT` failures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ctrlmgr.api.resource import Key
from ctrlmgr.clock import format_time
from ctrlmgr.eventlog import Failure
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.resource_lookup import Named

_FIELDS = Failure.__struct_fields__
_ALL = f"SELECT {', '.join(_FIELDS)} FROM failure ORDER BY since DESC, controller, key"


def failures(database: Database, *, at: int | None = None, ended: bool = False) -> list[Failure]:
    """Return the current failures, or those at the time `at`; if `ended` is set, include failures that have ended.

    The time `at` is in microseconds since 1970. The result begins with the newest failure.
    """
    found = [Failure(**dict(zip(_FIELDS, row, strict=True))) for row in database.query(_ALL).rows]
    if at is not None:
        return [each for each in found if each.since <= at and (each.ended_at is None or each.ended_at > at)]
    return [each for each in found if ended or each.ended_at is None]


def failures_of(found: Iterable[Failure], named: Named, key: Key) -> list[Failure]:
    """Return the failures in `found` that have the object's key.

    Only failures of controllers that reconcile the object's kind or an unknown kind are returned.
    """
    kinds = ("", named.singular.partition(".")[0])
    return [each for each in found if each.key == str(key) and each.kind.lower() in kinds]


def as_json(found: Iterable[Failure]) -> list[dict[str, Any]]:
    """Return failures as plain JSON values."""
    return [_plain(each) for each in found]


def _plain(failure: Failure) -> dict[str, Any]:
    return {
        "controller": failure.controller,
        "kind": failure.kind,
        "object": failure.key,
        "error": failure.error,
        "attempts": failure.attempts,
        "since": format_time(failure.since),
        "lastAttempt": format_time(failure.last_at),
        "nextRetry": _time(failure.next_retry_at),
        "ended": _time(failure.ended_at),
        "traceback": failure.traceback,
    }


def _time(moment: int | None) -> str | None:
    return None if moment is None else format_time(moment)

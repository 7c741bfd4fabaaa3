"""SQL statements that record failures; the statements for SQLite and PostgreSQL differ only in the parameter marks.

Guarantees: each failure has one row, which `UPSERT` inserts or updates. After `PRUNE` only the rows of the most recent
failures are left, at most `FAILURES_KEPT`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ctrlmgr.eventlog.appending.committer import Finished
from ctrlmgr.eventlog.event import FAILURES_KEPT, Failure, Outcome

_COLUMNS: Final = Failure.__struct_fields__
_UPDATED: Final = ", ".join(
    f"{each} = excluded.{each}" for each in _COLUMNS if each not in ("controller", "key", "since")
)
UPSERT: Final = (
    f"INSERT INTO failure ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' for _ in _COLUMNS)})"
    f" ON CONFLICT (controller, key, since) DO UPDATE SET {_UPDATED}"
)
PRUNE: Final = (
    "DELETE FROM failure WHERE last_at <"
    f" (SELECT last_at FROM failure ORDER BY last_at DESC LIMIT 1 OFFSET {FAILURES_KEPT - 1})"
)


def failures_of(finished: Sequence[Finished]) -> list[tuple[Any, ...]]:
    """Return the parameters of `UPSERT` for each failure, as tuples."""
    return [msgspec.structs.astuple(each) for each in finished if isinstance(each, Failure)]


def outcomes_of(finished: Sequence[Finished]) -> list[tuple[int, Outcome]]:
    """Return the outcomes in `finished`, which also contains failures."""
    return [each for each in finished if not isinstance(each, Failure)]

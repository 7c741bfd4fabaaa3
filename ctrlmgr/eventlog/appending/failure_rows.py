"""SQL statements that record failures in both databases, which differ only in the marks of parameters.

Guarantees: each failure has one row, which `UPSERT` inserts or updates. `PRUNE` deletes all rows except those of the
`FAILURES_KEPT` most recent failures.
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
    """Return the outcomes in `finished`, a list of outcomes and failures."""
    return [each for each in finished if not isinstance(each, Failure)]

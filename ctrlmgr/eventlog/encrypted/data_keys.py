"""The table of data keys, which is outside the hash chain.

Guarantees: a row never contains a data key in plain form, unless the provider identity encrypts it. A stored data key
never changes; a rotation replaces only the key's encrypted form, in one statement. If a process dies during a rotation,
each row contains the old or the new encrypted form, and both decrypt to the same data key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from sqlalchemy import Connection, insert, select, update

from ctrlmgr.eventlog.log_tables import data_key

TEXTS: Final = "texts"
"""The resource name of the data keys that encrypt error texts; no real resource has this name."""

Opened = Callable[[], AbstractContextManager[Connection]]


class DataKey(NamedTuple):
    """A data key of one resource; times are in microseconds since 1970.

    The field `wrapped` is the prefix of the cipher that encrypted the key, and the encrypted key in base64.
    """

    id: str
    resource: str
    wrapped: str
    created_at: int
    wrapped_at: int

    @property
    def is_for_texts(self) -> bool:
        """Whether the data key encrypts error texts, and not objects."""
        return self.resource == TEXTS


class DataKeys(Protocol):
    """The stored data keys of a log."""

    def all(self) -> Sequence[DataKey]:
        """Return all data keys, oldest first."""

    def add(self, key: DataKey) -> None:
        """Add a data key durably."""

    def rewrap(self, key: DataKey, wrapped: str, now: int) -> bool:
        """Replace the encrypted form of a data key; return False if another process has replaced it meanwhile."""


class DataKeyTable:
    """The data keys in the log's database."""

    def __init__(self, read: Opened, write: Opened) -> None:
        """Use `read` for single statements and `write` for write transactions."""
        self._read = read
        self._write = write

    def all(self) -> Sequence[DataKey]:
        """Return all data keys, oldest first."""
        with self._read() as connection:
            query = select(data_key).order_by(data_key.c.created_at, data_key.c.id)
            return [DataKey(*row) for row in connection.execute(query)]

    def add(self, key: DataKey) -> None:
        """Add a data key durably."""
        with self._write() as connection:
            connection.execute(insert(data_key).values(**key._asdict()))

    def rewrap(self, key: DataKey, wrapped: str, now: int) -> bool:
        """Replace the encrypted form of a data key; return False if another process has replaced it meanwhile."""
        unchanged = (data_key.c.id == key.id, data_key.c.wrapped == key.wrapped)
        with self._write() as connection:
            changed = connection.execute(update(data_key).where(*unchanged).values(wrapped=wrapped, wrapped_at=now))
            return changed.rowcount == 1

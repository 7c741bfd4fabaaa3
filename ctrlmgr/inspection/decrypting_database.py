"""A read-only connection to a log's database that decrypts encrypted values in the results of queries.

Guarantees: only the results of a query are decrypted; the query itself reads the encrypted values. Therefore conditions
on encrypted fields match nothing, and columns that a view computes from an encrypted field are null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlmgr.clock import SystemClock
from ctrlmgr.encryption.key_providers import KeyProviders
from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog.encrypted.data_keys import DataKey
from ctrlmgr.eventlog.encrypted.payload_codec import PayloadCodec
from ctrlmgr.inspection.database import Database, Rows

_ALL: Final = f"SELECT {', '.join(DataKey._fields)} FROM data_key ORDER BY created_at, id"


class _QueriedKeys:
    """The data keys of a log, for a process that only reads the log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> Sequence[DataKey]:
        return [DataKey(*row) for row in self._database.query(_ALL).rows]

    def add(self, key: DataKey) -> None:
        raise LogUnavailable("the log is open for reading only")

    def rewrap(self, key: DataKey, wrapped: str, now: int) -> bool:
        raise LogUnavailable("the log is open for reading only")


class DecryptingDatabase(Database):
    """A log's database whose encrypted payloads and error texts are shown in plain form."""

    def __init__(self, database: Database, providers: KeyProviders) -> None:
        """Create a database that decrypts the results of `database` with the ciphers of `providers`."""
        self.dialect = database.dialect
        self._database = database
        self._codec = PayloadCodec(providers, _QueriedKeys(database), clock=SystemClock())

    def query(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """Run one statement; see `Database`. Raises `LogUnavailable` if a key is missing or wrong."""
        columns, rows = self._database.query(statement, parameters)
        return Rows(columns, [tuple(map(self._plain, row)) for row in rows])

    def _plain(self, value: Any) -> Any:
        return self._codec.readable(value) if isinstance(value, str) and "k8s:enc:log:" in value else value

    def refuse_power(self) -> None:
        """Raise `SettingsError` if the database role has unrestricted access to the database server."""
        self._database.refuse_power()

    def close(self) -> None:
        """Disconnect."""
        self._codec.close()
        self._database.close()

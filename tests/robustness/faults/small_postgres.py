"""A PostgreSQL server on a small disk, which is started again when the disk has free space."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from subprocess import CalledProcessError

import psycopg

from ctrlmgr.testing.postgres import PostgresCluster

_SETTINGS = {"max_wal_size": "16MB", "min_wal_size": "2MB"}
_PATIENCE = 30.0
_LOCAL = "127.0.0.1"


class SmallPostgres(PostgresCluster):
    """A PostgreSQL cluster with small segments of the write-ahead log, so that a full disk also affects the write-ahead
    log.
    """

    def __init__(
        self, folder: Path | None = None, *, settings: Mapping[str, str] | None = None, address: str = _LOCAL
    ) -> None:
        """Store all files of the PostgreSQL cluster in `folder`."""
        usual, tempfile.tempdir = tempfile.tempdir, str(folder) if folder else tempfile.tempdir
        try:
            super().__init__(settings={**_SETTINGS, **(settings or {})}, address=address)
        finally:
            tempfile.tempdir = usual

    def _run(self, program: str, *arguments: str) -> None:
        super()._run(program, *arguments, *(("--wal-segsize", "1") if program == "initdb" else ()))

    def url(self, database: str = "postgres", *, port: int | None = None) -> str:
        """Return the URL of a database; the URL disables TLS, which is required by default for other hosts."""
        return super().url(database, port=port) + ("" if self.address == _LOCAL else "?sslmode=disable")

    def recover(self) -> None:
        """Wait until the PostgreSQL server responds; start it again if it has ended because of the full disk."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self.execute("SELECT 1")
            except psycopg.Error:
                assert time.monotonic() < deadline, "the database server does not come back"
                self._start_if_it_ended()
                time.sleep(0.05)
            else:
                return

    def _start_if_it_ended(self) -> None:
        try:
            os.kill(self._first_process(), 0)
        except (OSError, ValueError):
            try:
                self.start()
            except CalledProcessError:
                return  # not yet: the server may still be in recovery

"""Creates databases for test runs: a SQLite file, or a private PostgreSQL server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import migrate_log
from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.histories.run import RunSetup

_NAME = "robustness"
_CUT = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{_NAME}' AND pid <> pg_backend_pid()"


def on_sqlite(folder: Path, *, settings: str = "") -> RunSetup:
    """A database that is a SQLite file in `folder`."""
    return RunSetup(folder, f"sqlite:///{folder / 'ctrlmgr.db'}", settings=settings)


@contextmanager
def on_postgres(folder: Path, cluster: PostgresCluster, *, servers: int = 1, settings: str = "") -> Iterator[RunSetup]:
    """A database of a PostgreSQL server; a test can cut the connections to it."""
    cluster.execute(f"CREATE DATABASE {_NAME}")
    try:
        migrate_log(cluster.url(_NAME), clock=SystemClock(), random=random.Random(1))
        yield RunSetup(folder, cluster.url(_NAME), servers, lambda: cluster.execute(_CUT), settings)
    finally:
        cluster.execute(f"DROP DATABASE {_NAME} WITH (FORCE)")

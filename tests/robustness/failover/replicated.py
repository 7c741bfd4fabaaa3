"""A PostgreSQL primary and its synchronous standby, for tests of failures.

Guarantees:
- Primary and standby are real servers with separate files, on free ports of the requested addresses; `close` removes
  all files.
- After the start, and after `rejoin_old_primary`, a commit is confirmed only when the standby has written it to disk.
- After `promote`, the new primary commits without a standby, as with Patroni, until the other server has joined again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from types import TracebackType

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import migrate_log
from ctrlmgr.testing.postgres import USER, PostgresCluster

DATABASE = "replicated"
TEMPLATE = "migrated"
_DEADLINE = 30.0
_SETTINGS = {"max_wal_size": "1GB", "wal_keep_size": "512MB", "wal_receiver_status_interval": "1s"}


class ReplicatedPostgres:
    """Two PostgreSQL servers: `primary` accepts writes, and `standby` replicates; it is a context manager.

    `url` is the URL of a migrated, empty log on the current primary.
    """

    def __init__(
        self, addresses: tuple[str, str] = ("127.0.0.1", "127.0.0.1"), *, settings: Mapping[str, str] | None = None
    ) -> None:
        """Create both servers and wait until the standby replicates; `settings` contains lines for each server's
        postgresql.conf.
        """
        self._settings = {**_SETTINGS, **(settings or {})}
        self._databases = 0
        self.primary = PostgresCluster(settings=self._settings, address=addresses[0])
        self.standby = self.primary
        try:
            self.primary.let_in(f"host all {USER} all scram-sha-256", f"host replication {USER} all scram-sha-256")
            self.primary.execute(f"CREATE DATABASE {TEMPLATE}")
            migrate_log(self.primary.url(TEMPLATE), clock=SystemClock(), random=random.Random(1))
            self.primary.execute(f"CREATE DATABASE {DATABASE} TEMPLATE {TEMPLATE}")
            self.standby = PostgresCluster(settings=self._settings, address=addresses[1], standby_of=self.primary)
            self._require_standby()
        except BaseException:
            self.close()
            raise
        self.nodes = (self.primary, self.standby)

    def __enter__(self) -> ReplicatedPostgres:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The URL of the log that names both servers, so that it does not depend on their roles."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """Return the URL of a database that names both servers."""
        first, second = self.nodes
        head, _, tail = first.url(database).rpartition("@")
        return f"{head}@{tail.partition('/')[0]},{second.address}:{second.port}/{database}"

    def another(self) -> str:
        """Return the URL of another log, empty and migrated."""
        self._databases += 1
        name = f"{DATABASE}_{self._databases}"
        self.primary.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        return self.url_of(name)

    def execute(self, statement: str, database: str = DATABASE) -> list[tuple[object, ...]]:
        """Run a SQL statement on the primary as its superuser."""
        return self.primary.execute(statement, database)

    def stop_primary(self, mode: str = "fast") -> None:
        """Stop the primary in one of these ways: `fast`, `immediate` (like a crash) or `kill` (SIGKILL of its first
        process).
        """
        if mode == "kill":
            self.primary.kill()
        else:
            self.primary.stop(mode)

    def promote(self) -> None:
        """Promote the standby; the old primary, whether it runs or not, is now `standby`."""
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def restart(self, mode: str = "fast") -> None:
        """Stop the primary and start it again as the primary."""
        self.stop_primary(mode)
        self.primary.start()

    def rejoin_old_primary(self) -> None:
        """Make the former primary the standby of the new primary, and wait until it replicates.

        Commits that only the former primary has are lost, because its data is replaced by a new copy.
        """
        self.standby.follow(self.primary)
        self._require_standby()

    def require_standby(self, wanted: bool) -> None:
        """Return whether the primary's commits wait for a standby."""
        self.primary.execute(f"ALTER SYSTEM SET synchronous_standby_names = {chr(39)}{'*' if wanted else ''}{chr(39)}")
        self.primary.execute("SELECT pg_reload_conf()")

    def await_commit_waiting(self) -> None:
        """Return as soon as a commit on the primary waits for the standby."""
        until(lambda: self.waiting_commits(), "a commit waits for the standby")

    def waiting_commits(self) -> list[int]:
        """Return the PIDs of the primary's backends whose commits wait for the standby."""
        return waiting_commits(self.primary)

    def _require_standby(self) -> None:
        self.require_standby(True)
        in_step = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'"
        until(lambda: self.primary.execute(in_step), "the standby is in step")

    def close(self) -> None:
        """Stop both servers, whether they run or not, and remove their files."""
        for node in {self.primary, self.standby}:
            node.close()


def waiting_commits(server: PostgresCluster) -> list[int]:
    """Return the PIDs of a server's backends whose commits wait for a standby."""
    rows = server.execute("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    return [pid for (pid,) in rows]


def until(claim: Callable[[], object], what: str) -> None:
    """Wait for PostgreSQL servers by polling, because they send no notifications."""
    deadline = time.monotonic() + _DEADLINE
    while not claim():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)

"""The set-up of a round: a database, and the servers on it, which start at the same time.

Guarantees: each round has its own set-up, except that many rounds may share one PostgreSQL server. All started
processes have ended when the context ends.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import migrate_log
from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.faults.machine import inside
from tests.robustness.serving import ConfiguredServer

SHORT = (
    *("--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s"),
    *("--leader-elect-retry-period", "500ms"),
)
"""A lease duration that is so short that a round need not last long."""
LEASE = 3.0
DEFAULT_LEASE = 15.0

TEMPLATE = "faults_template"
_numbers = itertools.count(1)


class Member(ConfiguredServer):
    """One of the servers; it runs in a network namespace if one is given."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        variables: Mapping[str, str] | None = None,
        namespace: str = "",
        address: str = "127.0.0.1",
    ) -> None:
        """Create the server as `ConfiguredServer` does; it listens on a port of `address`."""
        folder.mkdir()
        super().__init__(folder, *arguments)
        self._variables = dict(variables or {})
        self._listen = f"{address}:0"
        self._namespace = namespace

    def start(self) -> None:
        """Start the server in its namespace, and wait until it is ready."""
        with inside(self._namespace) if self._namespace else nullcontext():
            super().start()

    @property
    def ended(self) -> int | None:
        """The exit code of a server that has ended by itself; None while the server runs."""
        return None if self._process is None else self._process.poll()

    def leads(self) -> bool:
        """Return whether the server reports that it is the leader."""
        return 'leader_election_master_status{name="ctrlmgr"} 1.0' in self.request("GET", "/metrics")[1]


class Database(Protocol):
    """The type of the database that contains the log."""

    url: str


class Stage:
    """A database and the servers on it."""

    def __init__(self, folder: Path, url: str, members: Sequence[Member]) -> None:
        """Describe a set-up with the servers `members` on the database at `url`; no server runs yet."""
        self.folder = folder
        self.url = url
        self.members = members

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the servers within the block."""
        with ExitStack() as stack, ThreadPoolExecutor(len(self.members)) as threads:
            for member in self.members:
                stack.callback(member.close)
            for started in [threads.submit(_started, member) for member in self.members]:
                started.result()
            yield

    def leader(self) -> int:
        """Return the number of the leader; return the number of the first server if no server reports that it leads."""
        return next((number for number, member in enumerate(self.members) if member.leads()), 0)

    @property
    def is_a_file(self) -> bool:
        """Return whether the database is a SQLite file."""
        return self.url.startswith("sqlite:")


def _started(member: Member) -> None:
    member.start()


def members(folder: Path, url: str, count: int, *flags: str) -> list[Member]:
    """Return servers without special options."""
    return [Member(folder / f"server-{number}", "--database", url, *flags) for number in range(count)]


def sqlite_url(folder: Path) -> str:
    """Return the URL of a SQLite file in `folder`."""
    return f"sqlite:///{folder / 'ctrlmgr.db'}"


@contextmanager
def database_of(cluster: PostgresCluster) -> Iterator[str]:
    """Yield the URL of a new, migrated database in a PostgreSQL cluster."""
    if not cluster.execute(f"SELECT 1 FROM pg_database WHERE datname = '{TEMPLATE}'"):
        cluster.execute(f"CREATE DATABASE {TEMPLATE}")
        migrate_log(cluster.url(TEMPLATE), clock=SystemClock(), random=random.Random(1))
    with cluster.database(f"round_{next(_numbers)}", template=TEMPLATE) as url:
        yield url

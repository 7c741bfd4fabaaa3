"""Runs several `ctrlmgr serve` processes on one database, injects faults into the leader, and checks the log."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from ctrlmgr.api.resource import ENDPOINTS, LEASES, Key
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Event, EventLog, open_log
from ctrlmgr.leaderelection.lease_record import ObservedRecord, held
from tests.e2e.serving import DEADLINE, Server

KEY = Key("kube-system", "ctrlmgr")
_LOOK = 0.01
_TURNS = 20
"""The number of checks whether other processes can write; if all checks fail, a frozen process is assumed to hold the
write lock.
"""
_TOLD = 4000
"""The number of characters of each server's log that are printed after a failure."""


class Candidate(Server):
    """A `ctrlmgr serve` process that is a candidate for leadership."""

    def __init__(self, folder: Path, database: str, *flags: str) -> None:
        folder.mkdir()
        super().__init__(folder, "--database", database, *flags)

    @property
    def pid(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None

    def leads(self) -> bool:
        """Return whether the process reports that it is the leader."""
        return 'leader_election_master_status{name="ctrlmgr"} 1.0' in self.request("GET", "/metrics")[1]

    def await_end(self) -> None:
        """Wait until the process has ended after a signal."""
        assert self._process is not None, "it does not run"
        self._process.communicate(timeout=DEADLINE)
        self._process = None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


class Group:
    """The server processes and their log; a context manager that starts and ends the processes."""

    def __init__(self, folder: Path, database: str, *flags: str, size: int = 2) -> None:
        self.servers = [Candidate(folder / f"server-{number}", database, *flags) for number in range(size)]
        self._folder = folder
        self._database = database
        self._names = 0

    def __enter__(self) -> Group:
        try:
            for server in self.servers:
                server.start()
            clock, anchor = SystemClock(), self._folder / "group-anchor"
            self.log: EventLog = open_log(self._database, clock=clock, random=random.Random(1), anchor=anchor)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            for server in self.servers:
                error.add_note(f"{server.kubeconfig.parent.name}:\n{server.log[-_TOLD:]}")
        self._close()
        self.log.close()

    def _close(self) -> None:
        for server in self.servers:
            if server.runs:
                server.signal(signal.SIGCONT)
            server.close()

    def freeze(self, server: Candidate) -> None:
        """Freeze a process, but not while it holds the write lock of a SQLite file, because then no other process could
        write.
        """
        while True:
            freeze(server.pid)
            if can_be_written(self._database):
                return
            server.signal(signal.SIGCONT)

    def lease(self) -> ObservedRecord:
        """Return the Lease."""
        lease = self.log.get(LEASES, KEY)
        assert lease is not None
        return held(lease)

    def leader(self) -> Candidate:
        """Return the leader as soon as a process leads."""
        found: list[Candidate] = []

        def is_found() -> bool:
            found[:] = [server for server in self.servers if server.runs and server.leads()]
            return len(found) == 1

        until(is_found)
        return found[0]

    def other(self, leader: Candidate) -> Candidate:
        """Return a process that does not lead."""
        return next(server for server in self.servers if server is not leader and server.runs)

    def service(self, server: Server) -> Key:
        """Create a Service through `server`, for which the leader must write Endpoints; return the Service's key."""
        self._names += 1
        name = f"service-{self._names}"
        spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
        server.create("/api/v1/namespaces/default/services", {"metadata": {"name": name}, "spec": spec})
        return Key("default", name)

    def await_endpoints(self, service: Key) -> None:
        """Return when the leader has written the Endpoints."""
        until(lambda: self.log.get(ENDPOINTS, service) is not None)

    def await_term(self, after: int) -> ObservedRecord:
        """Return the Lease as soon as a newer term has begun."""
        until(lambda: self.lease().term > after and self.lease().holder)
        return self.lease()

    def violations(self) -> list[str]:
        """Return the violations of the leader election's rules in the log."""
        return list(violations(list(self.log.scan())))


def violations(events: Sequence[Event]) -> Iterator[str]:
    """Yield each write of a term that had ended or whose Lease was released, and each decrease of the term."""
    current = released = 0
    for event in events:
        if event.resource == LEASES and event.key == KEY:
            lease = held(event.object)
            if lease.term != event.term or lease.term < current:
                yield f"revision {event.revision}: the lease says term {lease.term} in term {current}"
            current = max(current, lease.term)
            released = released if lease.holder else lease.term
        elif event.term and event.term != current:
            yield f"revision {event.revision}: {event.actor} wrote in term {event.term}, which was {current}"
        elif event.term and event.term <= released:
            yield f"revision {event.revision}: {event.actor} wrote in term {event.term}, which was given back"
        elif event.actor == "system:serviceaccount:kube-system:endpoint-controller" and not event.term:
            yield f"revision {event.revision}: {event.actor} wrote without a term"


def freeze(process: int) -> None:
    """Freeze a process, and return when none of its threads runs any more; a system call in progress ends first."""
    os.kill(process, signal.SIGSTOP)
    until(lambda: all(map(_is_stopped, Path(f"/proc/{process}/task").iterdir())))


def _is_stopped(thread: Path) -> bool:
    return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "T"


def can_be_written(database: str) -> bool:
    """Return whether other processes can write, because a frozen process may hold the write lock of a SQLite file."""
    if not database.startswith("sqlite:"):
        return True
    with Path(database.removeprefix("sqlite:///") + "-lock").open("rb") as file:
        for _ in range(_TURNS):
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOOK)
            else:
                return True
    return False


def until(claim: Callable[[], object]) -> None:
    """Wait for other processes by polling, at short intervals because the time is measured."""
    deadline = time.monotonic() + DEADLINE
    while not claim():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(_LOOK)

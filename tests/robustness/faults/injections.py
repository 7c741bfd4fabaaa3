"""The faults: for each fault, the necessary set-up, the injection, and the recovery."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar, NamedTuple

from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.failover.leaders import can_be_written, freeze
from tests.robustness.failover.replicated import ReplicatedPostgres
from tests.robustness.faults import stage
from tests.robustness.faults.machine import Network, SmallDisk, WallClock, inside
from tests.robustness.faults.small_postgres import SmallPostgres
from tests.robustness.faults.stage import DEFAULT_LEASE, LEASE, SHORT, Member, Stage

SQLITE, POSTGRESQL = "sqlite", "postgresql"


class RoundResources(NamedTuple):
    """The resources of a round: its folder, its random generator and its database."""

    folder: Path
    dice: random.Random
    cluster: PostgresCluster | None
    """The PostgreSQL cluster of the round; None means that the database is a SQLite file."""
    is_short: bool = False
    """Whether the waiting times in the round must be as short as possible."""


class AffectedServer(NamedTuple):
    """The affected server and the type of the fault, as in a history's `Fault`; the server -1
    stands for the database.
    """

    kind: str
    server: int
    told: str


class Injection:
    """The fault that a round injects. The base class injects no fault, and uses the usual set-up."""

    name: ClassVar[str] = "none"
    databases: ClassVar[tuple[str, ...]] = (SQLITE, POSTGRESQL)
    flags: tuple[str, ...] = SHORT

    def __init__(self, ground: RoundResources) -> None:
        """Prepare to inject the fault into a round with these resources."""
        self.ground = ground
        self.dice = ground.dice
        self.count = self.dice.choice((2, 2, 2, 3))

    @contextmanager
    def stage(self) -> Iterator[Stage]:
        """Create the resources that the fault needs; raises `Missing` if the machine cannot provide them."""
        folder = self.ground.folder
        with ExitStack() as stack:
            cluster = self.ground.cluster
            url = stack.enter_context(stage.database_of(cluster)) if cluster else stage.sqlite_url(folder)
            yield self.on(url)

    def on(self, url: str) -> Stage:
        """Return the servers of the round, which use a database."""
        return Stage(self.ground.folder, url, stage.members(self.ground.folder, url, self.count, *self.flags))

    def strike(self, at: Stage) -> AffectedServer:
        """Inject the fault; return when the fault has ended."""
        return AffectedServer("none", 0, "nothing")

    def heal(self, at: Stage) -> None:
        """Repair the parts that do not recover by themselves."""

    def choose(self, at: Stage, leader: float) -> int:
        """Return the number of a random server, which is the leader with this probability."""
        return at.leader() if self.dice.random() < leader else self.dice.randrange(len(at.members))

    def last(self, least: float, most: float) -> float:
        """Wait for a random time; return the waited seconds."""
        seconds = self.dice.uniform(least, most)
        time.sleep(seconds)
        return seconds


class Kill(Injection):
    """A fault in which a server is killed with SIGKILL, and is started again."""

    name = "kill"
    _server = 0

    def strike(self, at: Stage) -> AffectedServer:
        self._server = self.choose(at, leader=0.6)
        at.members[self._server].kill()
        away = self.last(0.0, 2.0)
        return AffectedServer("kill", self._server, f"server {self._server}, away for {away:.1f} s")

    def heal(self, at: Stage) -> None:
        at.members[self._server].start()


class Freeze(Injection):
    """A fault in which a server is stopped with SIGSTOP for longer than its lease; sometimes the server has the default
    lease.
    """

    name = "stop"
    _server = 0

    def __init__(self, ground: RoundResources) -> None:
        super().__init__(ground)
        is_long = self.dice.random() < 0.1 and not ground.is_short
        self._lease = DEFAULT_LEASE if is_long else LEASE
        self.flags = () if self._lease == DEFAULT_LEASE else SHORT

    def strike(self, at: Stage) -> AffectedServer:
        self._server = self.choose(at, leader=0.8)
        freeze(at.members[self._server].pid)
        holds_turn = not can_be_written(at.url)
        seconds = self.last(self._lease * 1.05, self._lease * 1.3)
        told = f"server {self._server}, for {seconds:.1f} s" + (", having the turn to write" if holds_turn else "")
        # A process that is frozen with the write lock of a SQLite file blocks all others.
        return AffectedServer("database", -1, told) if holds_turn else AffectedServer(self._kind, self._server, told)

    @property
    def _kind(self) -> str:
        """The type of the fault in the history, because a long freeze may exceed the timeouts of clients."""
        return "kill" if self._lease == DEFAULT_LEASE else "pause"

    def heal(self, at: Stage) -> None:
        os.kill(at.members[self._server].pid, signal.SIGCONT)


class TurnClock(Injection):
    """A fault in which the wall clock of one server or of all servers jumps by hours and by a day."""

    name = "clock"
    _JUMPS = (-7200, -3600, -60, 60, 3600, 86_400)

    def on(self, url: str) -> Stage:
        folder = self.ground.folder
        self._clocks = [WallClock(folder / f"clock-{number}") for number in range(self.count)]
        members = [
            Member(folder / f"server-{number}", "--database", url, *self.flags, variables=clock.variables)
            for number, clock in enumerate(self._clocks)
        ]
        return Stage(folder, url, members)

    def strike(self, at: Stage) -> AffectedServer:
        turned = self._clocks if self.dice.random() < 0.3 else [self._clocks[self.choose(at, leader=0.6)]]
        jumps = [self.dice.choice(self._JUMPS) for _ in range(3)]
        for jump in jumps:
            for clock in turned:
                clock.turn(jump)
            self.last(0.2, 1.5)
        return AffectedServer("clock", -1, f"{len(turned)} clocks, by {', '.join(f'{jump:+d} s' for jump in jumps)}")

    def heal(self, at: Stage) -> None:
        for clock in self._clocks:
            clock.turn(0)


class RestartDatabase(Injection):
    """A fault in which the database server stops, gracefully or as in a crash, and starts again after a while."""

    name = "restart-db"
    databases = (POSTGRESQL,)

    def strike(self, at: Stage) -> AffectedServer:
        mode = self.dice.choice(("fast", "immediate"))
        self._cluster.stop(mode)
        away = self.last(0.0, 3.0)
        return AffectedServer("database", -1, f"{mode}, away for {away:.1f} s")

    def heal(self, at: Stage) -> None:
        self._cluster.start()

    @property
    def _cluster(self) -> PostgresCluster:
        assert self.ground.cluster is not None
        return self.ground.cluster


class CutConnections(Injection):
    """A fault in which connections to the database end: some or all, once or repeatedly, closed by the server or by the
    network.
    """

    name = "cut"
    databases = (POSTGRESQL,)

    def strike(self, at: Stage) -> AffectedServer:
        way = self.dice.choice((self._some, self._all, self._reset))
        times = self.dice.choice((1, 1, 3, 8))
        for _ in range(times):
            way(at)
            self.last(0.0, 0.4)
        return AffectedServer("database", -1, f"{way.__name__.removeprefix('_')}, {times} times")

    def _some(self, at: Stage) -> None:
        self._end(at, f"random() < {self.dice.choice((0.2, 0.5))}")

    def _all(self, at: Stage) -> None:
        self._end(at, "true")

    def _end(self, at: Stage, which: str) -> None:
        cluster, name = self.ground.cluster, at.url.rpartition("/")[2]
        assert cluster is not None
        cluster.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND {which}")

    def _reset(self, at: Stage) -> None:
        assert self.ground.cluster is not None
        command = [
            "ss",
            "--kill",
            "--no-header",
            "--tcp",
            "state",
            "established",
            f"dport = {self.ground.cluster.port}",
        ]
        subprocess.run(command, capture_output=True, check=True)


class Promote(Injection):
    """A fault in which the primary is lost and its synchronous standby is promoted; sometimes the old primary joins
    again as the standby.
    """

    name = "promote"
    databases = (POSTGRESQL,)

    @contextmanager
    def stage(self) -> Iterator[Stage]:
        with ReplicatedPostgres() as self._pair:
            self._has_standby = True
            yield self.on(self._pair.url)

    def strike(self, at: Stage) -> AffectedServer:
        self._join()
        mode = self.dice.choice(("fast", "immediate", "kill"))
        self._pair.stop_primary(mode)
        away = self.last(0.0, 2.0)
        self._pair.promote()
        self._has_standby = False
        return AffectedServer("database", -1, f"{mode}, promoted after {away:.1f} s")

    def heal(self, at: Stage) -> None:
        if self.dice.random() < 0.5:
            self._join()

    def _join(self) -> None:
        if not self._has_standby:
            self._pair.rejoin_old_primary()
            self._has_standby = True


class FillDisk(Injection):
    """A fault in which the disk of the database is full for a while."""

    name = "disk-full"
    _SIZES: ClassVar[Mapping[str, int]] = {SQLITE: 24, POSTGRESQL: 192}

    @contextmanager
    def stage(self) -> Iterator[Stage]:
        kind = POSTGRESQL if self.ground.cluster else SQLITE
        with ExitStack() as stack:
            self._disk = stack.enter_context(SmallDisk(self.ground.folder / "disk", self._SIZES[kind]))
            self._cluster = SmallPostgres(self._disk.folder) if self.ground.cluster else None
            if self._cluster is None:
                yield self.on(stage.sqlite_url(self._disk.folder))
                return
            stack.enter_context(self._cluster)
            yield self.on(stack.enter_context(stage.database_of(self._cluster)))

    def strike(self, at: Stage) -> AffectedServer:
        self._disk.fill()
        full = self.last(0.5, 5.0)
        return AffectedServer("database", -1, f"for {full:.1f} s")

    def heal(self, at: Stage) -> None:
        self._disk.empty()
        if self._cluster is not None:
            self._cluster.recover()


class Partition(Injection):
    """A fault in which one server cannot reach the database, while clients can reach both."""

    name = "partition"
    databases = (POSTGRESQL,)

    @contextmanager
    def stage(self) -> Iterator[Stage]:
        self.count = 2
        with Network() as self._network, inside(self._network.near):
            address = self._network.database
            with SmallPostgres(settings={"listen_addresses": address}, address=address) as cluster:
                cluster.let_in("host all all 10.99.1.0/30 scram-sha-256")
                with stage.database_of(cluster) as url:
                    yield self.on(url)

    def on(self, url: str) -> Stage:
        folder, network = self.ground.folder, self._network
        near = Member(folder / "server-0", "--database", url, *self.flags)
        far = Member(folder / "server-1", "--database", url, *self.flags, namespace=network.far, address=network.server)
        return Stage(folder, url, [near, far])

    def strike(self, at: Stage) -> AffectedServer:
        seen, led = self.dice.random() < 0.5, at.leader() == 1
        self._network.cut(at_our_end=seen)
        seconds = self.last(1.0, 7.0)
        how = "by its own end" if seen else "in silence"
        return AffectedServer("kill", 1, f"{how}, for {seconds:.1f} s" + (", while it led" if led else ""))

    def heal(self, at: Stage) -> None:
        self._network.mend()


INJECTIONS: Mapping[str, type[Injection]] = {
    each.name: each for each in (Kill, Freeze, TurnClock, RestartDatabase, CutConnections, Promote, FillDisk, Partition)
}

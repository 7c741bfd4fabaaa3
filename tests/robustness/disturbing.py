"""Injects faults of servers and their database during a run; the package `faults` has more types of faults."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from ctrlmgr.errors import CtrlmgrError
from tests.robustness.histories.history import NEVER, Compaction
from tests.robustness.histories.history_cluster import HistoryCluster
from tests.robustness.histories.tail import Tail

_PAUSE = 1.5
_KEEP = 150
"""The maximum number of the newest revisions that a compaction keeps."""

ALL = ("stop", "kill", "pause", "database")
"""Every type of fault; the last type is only for databases with connections."""

Fault = Callable[[int], Awaitable[None]]


class Faults:
    """Injects faults, one at a time, and compacts the log repeatedly."""

    def __init__(
        self,
        world: HistoryCluster,
        tail: Tail,
        database: str,
        *,
        kinds: Collection[str],
        cut_connections: Callable[[], object] | None,
    ) -> None:
        """`cut_connections` ends all connections to the database; it is None for a database without connections."""
        self._world = world
        self._tail = tail
        self._database = database
        self._cut = cut_connections
        self._random = world.random("faults")
        known: dict[str, Fault] = {"stop": self._stop, "kill": self._kill, "pause": self._pause}
        if cut_connections is not None:
            known["database"] = self._cut_connections
        self._kinds = {kind: known[kind] for kind in sorted(known) if kind in kinds}

    async def run(self, seconds: float, between: float) -> None:
        """Inject every type of fault, either repeatedly in random order for this number of seconds, or once each."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds
        while True:
            for kind in self._random.sample(list(self._kinds), len(self._kinds)):
                await self._kinds[kind](self._random.randrange(len(self._world.servers)))
                await asyncio.sleep(between)
            if loop.time() >= ends_at:
                return

    async def compact(self, pause: float) -> None:
        """Compact the log every `pause` seconds; the first compaction uses the command, as an administrator would."""
        first = True
        while self._world.loaded:
            await asyncio.sleep(pause)
            await asyncio.to_thread(self._tail.read)
            before = self._tail.head - self._random.randrange(_KEEP)
            if before < 1:
                continue
            compaction = Compaction(before, self._world.now(), NEVER)
            self._world.history.compactions.append(compaction)
            try:
                await asyncio.to_thread(self._command if first else self._tail.compact, before)
            except CtrlmgrError:
                assert self._was_cut_since(compaction.called), "compaction failed"
                continue  # a part of the compaction may be done
            compaction.returned = self._world.now()
            first = False

    def _command(self, before: int) -> None:
        command = [sys.executable, "-m", "ctrlmgr", "compact", "--before", str(before), "--database", self._database]
        folder = ["--data-dir", str(self._world.servers[0].folder)]
        done = subprocess.run([*command, *folder], capture_output=True, text=True, cwd=Path(__file__).parents[2])
        if done.returncode:
            raise CtrlmgrError(done.stderr)

    def _was_cut_since(self, moment: int) -> bool:
        return any(fault.kind == "database" and fault.ended > moment for fault in self._world.history.faults)

    async def _stop(self, number: int) -> None:
        server = self._world.servers[number]
        fault = self._world.fault("stop", number)
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        fault.ended = self._world.now()

    async def _kill(self, number: int) -> None:
        server = self._world.servers[number]
        fault = self._world.fault("kill", number)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        fault.ended = self._world.now()

    async def _pause(self, number: int) -> None:
        fault = self._world.fault("pause", number)
        await asyncio.to_thread(self._world.servers[number].pause, _PAUSE)
        fault.ended = self._world.now()

    async def _cut_connections(self, number: int) -> None:
        assert self._cut is not None
        fault = self._world.fault("database", -1)
        await asyncio.to_thread(self._cut)
        fault.ended = self._world.now()

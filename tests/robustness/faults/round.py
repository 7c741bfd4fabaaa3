"""Runs consecutive rounds: it starts servers, repeatedly applies load and a fault at a random time, and then runs all
checks.
"""

from __future__ import annotations

import asyncio
import re
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

import uvloop

from tests.robustness.checks import check
from tests.robustness.failover.leaders import violations
from tests.robustness.faults.injections import AffectedServer, Injection
from tests.robustness.faults.judging import converged, settle, verified
from tests.robustness.faults.machine import FaultUnsupported
from tests.robustness.faults.stage import Member, Stage
from tests.robustness.histories.history import History
from tests.robustness.histories.history_cluster import NAMESPACES, HistoryCluster
from tests.robustness.histories.run import Plan, crowd, reach, read_everything
from tests.robustness.histories.tail import Tail
from tests.robustness.histories.watchers import Informer
from tests.robustness.histories.writers import write_the_last

PATIENCE = 40.0
"""Seconds after the recovery within which every server must accept writes again."""
_PROBE = 0.05
_TRIES = 5
_TOLD = 3000
_PASSING = (0, 404, 409, 429, 503, 504)
"""Responses that are allowed for a refused write; a loaded machine may exceed timeouts without any fault."""
_OF_LOAD = re.compile("G4 answers|R5 reads fail|W13 what happens is told in time|.*: (lasted|is answered (429|50[34]))")
"""Messages of checks that a slow machine can cause, and that rounds ignore, because they do not test latencies."""
_LOAD = Plan(0, writers=5, write_pause=0.08, readers=2, watchers=3, informers=4)


class Outcome(NamedTuple):
    """The results of a round."""

    fault: str
    told: str
    wrong: list[str]
    recovery: float
    """Seconds from the recovery until every server accepted writes again."""
    acknowledged: int


class Row:
    """Consecutive rounds with the same server processes; see the module's docstring. Used once."""

    def __init__(self, injections: Sequence[Injection], seed: int) -> None:
        """Inject each fault in `injections` in turn; the first fault creates the servers, and `seed` determines all
        random numbers.
        """
        self._injections = injections
        self._seed = seed
        self.outcomes: list[Outcome] = []
        """The results of the rounds so far."""

    def play(self) -> list[str]:
        """Run the rounds; return the violations, including errors that the rounds raised. Raises `FaultUnsupported`."""
        with ExitStack() as stack:
            stage = None
            try:
                stage = stack.enter_context(self._injections[0].stage())
                stack.enter_context(stage.running())
                tail = Tail(stage.url, stage.folder)
                stack.callback(tail.close)
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    history = runner.run(self._run(stage, tail))
                wrong = list(self._judge(stage, tail, history))
            except FaultUnsupported:
                raise
            except Exception:  # any error is reported with the rounds in which it occurred
                return [traceback.format_exc(), *(_logs(stage) if stage else ())]
        return [*(sentence for outcome in self.outcomes for sentence in outcome.wrong), *wrong]

    async def _run(self, stage: Stage, tail: Tail) -> History:
        world = HistoryCluster(stage.members, self._seed)
        for namespace in NAMESPACES:
            stage.members[0].create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        informers = [Informer(world, number, streaming=number % 2 == 0) for number in range(_LOAD.informers)]
        async with asyncio.TaskGroup() as everybody:
            for informer in informers:
                everybody.create_task(informer.run())
            for number, injection in enumerate(self._injections, 1):
                await self._round(number, injection, world, stage, tail, informers)
            world.ended.set()
        for number in range(len(stage.members)):
            await read_everything(world, number)
        return world.history

    async def _round(
        self,
        number: int,
        injection: Injection,
        world: HistoryCluster,
        stage: Stage,
        tail: Tail,
        informers: Sequence[Informer],
    ) -> None:
        """Apply load, inject one fault at a random time, and recover; then wait for all clients and controllers."""
        world.loaded = True
        began = len(world.history.writes)
        async with asyncio.TaskGroup() as everybody:
            for each in crowd(_LOAD, world, number * 100):
                everybody.create_task(each.run())
            await asyncio.sleep(injection.dice.uniform(0.5, 2.5))
            struck, recovery = await _strike(injection, world, stage)
            await asyncio.sleep(0.5)
            world.loaded = False
        await reach(informers, await write_the_last(world, f"{number}-", _TRIES))
        wrong = await asyncio.to_thread(settle, tail, converged)
        acknowledged = sum(write.acknowledged for write in world.history.writes[began:])
        self.outcomes.append(Outcome(injection.name, struck.told, wrong, recovery, acknowledged))

    def _judge(self, stage: Stage, tail: Tail, history: History) -> Iterator[str]:
        yield from _ended(stage)
        for member in stage.members:
            member.stop()
        tail.read()
        history.log = tail.log
        yield from (sentence for sentence in check(history) if not _OF_LOAD.match(sentence))
        yield from _unexpected(history)
        yield from tail.violations(violations)
        yield from verified(stage)
        for number, member in enumerate(stage.members):
            if "Traceback" in member.log:
                yield f"log: server {number} logs {member.log[member.log.index('Traceback') :][:_TOLD]}"


async def _strike(injection: Injection, world: HistoryCluster, stage: Stage) -> tuple[AffectedServer, float]:
    fault = world.fault("database", -1)  # until the fault is known
    struck = await asyncio.to_thread(injection.strike, stage)
    fault.kind, fault.server = struck.kind, struck.server
    await asyncio.to_thread(injection.heal, stage)
    recovery = await asyncio.to_thread(_recover, stage)
    fault.ended = world.now()
    return struck, recovery


def _recover(stage: Stage) -> float:
    """Wait until every server accepts writes again; return the seconds that this took. Raises AssertionError."""
    began = time.monotonic()
    with ThreadPoolExecutor(len(stage.members)) as threads:
        for recovered in [threads.submit(_takes_writes, member, began + PATIENCE) for member in stage.members]:
            recovered.result()
    return time.monotonic() - began


def _takes_writes(member: Member, deadline: float) -> None:
    body = {"metadata": {"generateName": "recovered-"}}
    while True:
        assert member.ended is None, f"a server has ended by itself, with {member.ended}"
        try:
            code, answer = member.request("POST", "/api/v1/namespaces/default/configmaps", body)
        except OSError as error:
            code, answer = 0, error
        if code == 201:
            return
        assert time.monotonic() < deadline, f"a server does not take writes again: {code} {answer}"
        time.sleep(_PROBE)


def _unexpected(history: History) -> Iterator[str]:
    for write in history.writes:
        if not write.acknowledged and write.code not in _PASSING:
            yield f"answers: {write.verb} of {write.resource} was answered {write.code}: {write.message}"


def _ended(stage: Stage) -> Iterator[str]:
    for number, member in enumerate(stage.members):
        if member.ended is not None:
            yield f"server {number} has ended by itself, with {member.ended}"


def _logs(stage: Stage) -> Iterator[str]:
    for number, member in enumerate(stage.members):
        yield f"server {number} says:\n{member.log[-_TOLD:]}"

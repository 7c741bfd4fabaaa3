"""One run: servers, load, faults, healing; then the history, complete with the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import uvloop

from tests.robustness.disturbing import ALL, Faults
from tests.robustness.histories.history import History, Read, Selection
from tests.robustness.histories.history_cluster import NAMESPACES, RESOURCES, HistoryCluster
from tests.robustness.histories.readers import Reader, page_of
from tests.robustness.histories.tail import Tail
from tests.robustness.histories.watchers import Informer, Watcher
from tests.robustness.histories.writers import Last, Writer, write_the_last
from tests.robustness.serving import Served
from tests.robustness.wire import path_of

_END = 15.0
"""Seconds in which everybody must have got to the end once all is well."""

_TRACEBACK = 6000
"""Characters of a traceback that are kept."""


class Plan(NamedTuple):
    """How a run goes; durations in seconds."""

    seed: int
    quiet: float = 3.0
    """For how long at least nothing happens but load and compactions: what the rate is measured in."""
    warm_up: int = 100
    """How many writes must have been acknowledged before anything else happens, if that takes no more than `_END`."""
    faulty: float = 0.0
    """For how long faults go on; each kind happens at least once."""
    between_faults: float = 0.5
    faults: Collection[str] = ALL
    writers: int = 8
    write_pause: float = 0.02
    readers: int = 4
    watchers: int = 8
    informers: int = 4
    compact_every: float = 0.5


class Setting(NamedTuple):
    """Where a run takes place."""

    folder: Path
    database: str
    servers: int = 1
    cut_connections: Callable[[], object] | None = None
    settings: str = ""


def run(plan: Plan, setting: Setting) -> History:
    """Do it; raises AssertionError for a server that does not start, stop, or write what must succeed."""
    with ExitStack() as stack:
        servers = [server_of(setting, number) for number in range(setting.servers)]
        for server in servers:
            stack.callback(server.close)
            server.start()
        tail = Tail(setting.database, setting.folder)
        stack.callback(tail.close)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            history = runner.run(_run(plan, setting, servers, tail))
        for server in servers:
            server.stop()
            history.tracebacks += tracebacks(server.log)
        tail.read()
        history.log = tail.log
        tail.verify()
        return history


def tracebacks(log: str) -> list[str]:
    """Return what a log says of each request that failed unexpectedly."""
    return [each[:_TRACEBACK] for each in log.split("request failed")[1:]]


def server_of(setting: Setting, number: int = 0) -> Served:
    """Return a server of a run, which is not started yet."""
    folder = setting.folder / f"server-{number}"
    folder.mkdir()
    return Served(folder, "--database", setting.database, settings=setting.settings)


async def _run(plan: Plan, setting: Setting, servers: Sequence[Served], tail: Tail) -> History:
    world = HistoryCluster(servers, plan.seed)
    for namespace in NAMESPACES:
        code, answer = servers[0].request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert code == 201, answer
    informers = [Informer(world, number, streaming=number % 2 == 0) for number in range(plan.informers)]
    faults = Faults(world, tail, setting.database, kinds=plan.faults, cut_connections=setting.cut_connections)
    async with asyncio.TaskGroup() as everybody:
        for informer in informers:
            everybody.create_task(informer.run())
        for each in crowd(plan, world):
            everybody.create_task(each.run())
        everybody.create_task(faults.compact(plan.compact_every))
        await _warm_up(plan, world)
        await faults.run(plan.faulty, plan.between_faults)
        world.loaded = False
        last = await write_the_last(world)
        await reach(informers, last)
        world.ended.set()
    for number in range(len(servers)):
        await read_everything(world, number)
    return world.history


def crowd(plan: Plan, world: HistoryCluster, first: int = 0) -> Iterator[Writer | Reader | Watcher]:
    """Yield who uses the servers, numbered from `first` on."""
    yield from (Writer(world, first + number, plan.write_pause) for number in range(plan.writers))
    yield from (Reader(world, first + number, plan.write_pause) for number in range(plan.readers))
    yield from (Watcher(world, first + number, slow=number == 0) for number in range(plan.watchers))


async def _warm_up(plan: Plan, world: HistoryCluster) -> None:
    await asyncio.sleep(plan.quiet)
    deadline = asyncio.get_running_loop().time() + _END
    while asyncio.get_running_loop().time() < deadline:
        if sum(write.acknowledged for write in world.history.writes) >= plan.warm_up:
            return
        await asyncio.sleep(0.1)


async def reach(informers: Sequence[Informer], last: Sequence[Last]) -> None:
    """Wait until every informer has been told of what concerns it; who has not is for the checks to name."""
    deadline = asyncio.get_running_loop().time() + _END
    while asyncio.get_running_loop().time() < deadline:
        if all(informer.has(each) for informer in informers for each in last):
            return
        await asyncio.sleep(0.02)


async def read_everything(world: HistoryCluster, server: int) -> None:
    connection = world.connections()[server]
    for resource in RESOURCES:
        read = Read(server=server, resource=resource, selection=Selection(), whole=True)
        called = world.now()
        answer = await connection.request("GET", path_of(resource))
        read.pages.append(page_of(read, answer, called, world.now()))
        world.history.reads.append(read)
    connection.close()

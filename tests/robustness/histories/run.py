"""One run: servers, load, faults and recovery; then the events of the log are added to the history."""

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
from tests.robustness.histories.writers import FinalObject, Writer, write_the_last
from tests.robustness.serving import ConfiguredServer
from tests.robustness.wire import path_of

_END = 15.0
"""Seconds after the recovery within which all clients must receive the last events."""

_TRACEBACK = 6000
"""The maximum length of a stored traceback in characters."""


class Plan(NamedTuple):
    """The options of a run; durations are in seconds."""

    seed: int
    quiet: float = 3.0
    """The minimum duration in which there are only load and compactions, and in which the rate of
    writes is measured.
    """
    warm_up: int = 100
    """The number of acknowledged writes before the first fault, unless these writes take longer than `_END`."""
    faulty: float = 0.0
    """The duration of the faults; each type of fault occurs at least once."""
    between_faults: float = 0.5
    faults: Collection[str] = ALL
    writers: int = 8
    write_pause: float = 0.02
    readers: int = 4
    watchers: int = 8
    informers: int = 4
    compact_every: float = 0.5


class RunSetup(NamedTuple):
    """The servers, clients and files of a run."""

    folder: Path
    database: str
    servers: int = 1
    cut_connections: Callable[[], object] | None = None
    settings: str = ""


def run(plan: Plan, setting: RunSetup) -> History:
    """Perform the run; raise AssertionError if a server does not start, does not stop, or does not accept a necessary
    write.
    """
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
    """Return the unexpected errors of requests in a server's log."""
    return [each[:_TRACEBACK] for each in log.split("request failed")[1:]]


def server_of(setting: RunSetup, number: int = 0) -> ConfiguredServer:
    """Return a server for a run; the server is not started yet."""
    folder = setting.folder / f"server-{number}"
    folder.mkdir()
    return ConfiguredServer(folder, "--database", setting.database, settings=setting.settings)


async def _run(plan: Plan, setting: RunSetup, servers: Sequence[ConfiguredServer], tail: Tail) -> History:
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
    """Yield the clients of a run, numbered from `first` on."""
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


async def reach(informers: Sequence[Informer], last: Sequence[FinalObject]) -> None:
    """Wait until every informer has received its events; the checks later report the informers that have not."""
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

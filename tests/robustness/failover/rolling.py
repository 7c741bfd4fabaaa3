"""Restarts servers in turn under load: `python -m tests.robustness.failover.rolling --database postgresql`.

Two `ctrlmgr serve` processes share a database. Clients use both. A client retries after 429 and 503; if the server
announces that it closes the connection, or refuses a connection, the client connects to the other server. No other
error may occur, no acknowledged write may be missing, and no watcher may miss an event.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.failover.leaders import violations
from tests.robustness.faults.judging import converged, settle, verified
from tests.robustness.faults.stage import Stage, database_of, members, sqlite_url
from tests.robustness.histories.history_cluster import revision_of
from tests.robustness.histories.tail import AGENT, Tail
from tests.robustness.verdicts import say, verdict
from tests.robustness.wire import Connection, ConnectionLost, RequestNotSent, Response, path_of

MAPS = "configmaps"
NAMESPACE = "default"
_LATER = (429, 503)
_PAUSE = 0.01
_NOBODY = 0.05
"""Seconds that a client waits after a refused connection before it retries."""
_TIMEOUT = 5


class RequestResults:
    """The results of all clients' requests."""

    def __init__(self) -> None:
        self.done = 0
        self.later = 0
        """The number of responses with Retry-After."""
        self.wrong: list[str] = []
        self.created: dict[str, int] = {}
        """The revision at which each object was created, as in the response to the create."""
        self.reconnected = 0


class Client:
    """One client: it uses a connection to a server until the connection closes, and then connects
    to the other server.
    """

    def __init__(self, stage: Stage, tally: RequestResults, number: int) -> None:
        self._stage = stage
        self._tally = tally
        self._number = number
        self._at = number % len(stage.members)
        self._connection = Connection(stage.members[self._at].site)
        self._count = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Write and read until `stop` is set."""
        while not stop.is_set():
            self._count += 1
            name = f"c{self._number}-{self._count}"
            answer = await self._ask("POST", path_of(MAPS, NAMESPACE), {"metadata": {"name": name}}, agent=AGENT + name)
            if answer is not None and self._is(answer, 201, name):
                self._tally.created[name] = revision_of(answer.fields)
                read = await self._ask("GET", path_of(MAPS, NAMESPACE, name))
                if read is not None:
                    self._is(read, 200, name)
            await asyncio.sleep(_PAUSE)
        self._connection.close()

    def _is(self, answer: Response, code: int, name: str) -> bool:
        self._tally.done += 1
        if answer.code != code:
            self._tally.wrong.append(f"{name} was answered {answer.code}: {answer.body[:200]!r}")
        return answer.code == code

    async def _ask(self, method: str, path: str, body: object = None, *, agent: str = "rolling") -> Response | None:
        """Return the first response without Retry-After; return None if a request was lost, which is a violation."""
        while True:
            try:
                answer = await self._connection.request(method, path, body, agent=agent)
            except RequestNotSent:
                await self._move_on()
                continue
            except ConnectionLost as error:
                self._tally.wrong.append(f"{method} {path} was lost: {error}")
                await self._move_on()
                return None
            if answer.headers.get("connection") == "close":
                await self._move_on()
            if answer.code not in _LATER:
                return answer
            self._tally.later += 1
            await asyncio.sleep(float(answer.headers.get("retry-after", "1")))

    async def _move_on(self) -> None:
        """Connect to the other server."""
        self._tally.reconnected += 1
        self._connection.close()
        self._at = (self._at + 1) % len(self._stage.members)
        self._connection = Connection(self._stage.members[self._at].site)
        await asyncio.sleep(_NOBODY)


class Informer:
    """A watcher; when a stream ends, it continues at its last revision on the other server, and it must not miss an
    event.
    """

    def __init__(self, stage: Stage, tally: RequestResults, number: int) -> None:
        self._stage = stage
        self._tally = tally
        self._at = number
        self._cursor = 0
        self.told: list[tuple[int, str]] = []
        """The revision and the name of each created object."""

    async def run(self, stop: asyncio.Event) -> None:
        """Watch until `stop` is set."""
        while not stop.is_set():
            self._at = (self._at + 1) % len(self._stage.members)
            connection = Connection(self._stage.members[self._at].site)
            query = {"watch": "true", "resourceVersion": str(self._cursor or 1), "timeoutSeconds": str(_TIMEOUT)}
            try:
                await self._read(connection.lines(path_of(MAPS, NAMESPACE, "", query)))
            except RequestNotSent:
                await asyncio.sleep(_NOBODY)
            except ConnectionLost as error:
                self._tally.wrong.append(f"a watch was cut: {error}")

    async def _read(self, lines: AsyncIterator[bytes]) -> None:
        code = int(await anext(lines))
        async for line in lines:
            if code != 200:
                if code not in _LATER:
                    self._tally.wrong.append(f"a watch was answered {code}: {line[:200]!r}")
                return
            event: dict[str, Any] = json.loads(line)
            self._cursor = revision_of(event["object"])
            if event["type"] == "ADDED":
                self.told.append((self._cursor, event["object"]["metadata"]["name"]))


class Plan(NamedTuple):
    """The options of a run."""

    restarts: int = 3
    """How often each server is restarted."""
    clients: int = 6
    seed: int = 1


def roll(stage: Stage, plan: Plan) -> tuple[RequestResults, list[str]]:
    """Restart the running servers in turn while clients send requests; return the results and the violations."""
    tail = Tail(stage.url, stage.folder)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            tally, informers = runner.run(_roll(stage, plan))
        wrong = [*tally.wrong, *settle(tail, converged)]
        for member in stage.members:
            member.stop()
        tail.read()
        wrong += _missing(tally, informers, tail)
        wrong += [*tail.violations(violations), *verified(stage)]
        wrong += [f"{member.folder.name} logs a traceback" for member in stage.members if "Traceback" in member.log]
    finally:
        tail.close()
    return tally, wrong


async def _roll(stage: Stage, plan: Plan) -> tuple[RequestResults, Sequence[Informer]]:
    tally, stop, stop_watching = RequestResults(), asyncio.Event(), asyncio.Event()
    informers = [Informer(stage, tally, number) for number in range(2)]
    dice = random.Random(plan.seed)
    async with asyncio.TaskGroup() as watchers:
        for informer in informers:
            watchers.create_task(informer.run(stop_watching))
        async with asyncio.TaskGroup() as clients:
            for number in range(plan.clients):
                clients.create_task(Client(stage, tally, number).run(stop))
            for _ in range(plan.restarts):
                for member in stage.members:
                    await asyncio.sleep(dice.uniform(0.2, 1.0))
                    await asyncio.to_thread(member.stop)
                    await asyncio.to_thread(member.start)
            stop.set()
        stop_watching.set()  # each client still reads its stream to the end, within `_TIMEOUT`
    return tally, informers


def _missing(tally: RequestResults, informers: Sequence[Informer], tail: Tail) -> Iterator[str]:
    logged = [event for event in tail.log if event.resource == MAPS and event.write in tally.created]
    if sorted((event.name, event.revision) for event in logged) != sorted(tally.created.items()):
        yield "what is in the log is not what was acknowledged"
    for number, informer in enumerate(informers):
        told = [each for each in informer.told if each[1] in tally.created]
        if told != [(event.revision, event.name) for event in logged]:
            yield f"informer {number} was told of {len(told)} objects, {len(logged)} were created"


@contextmanager
def stage_on(database: str, folder: Path) -> Iterator[Stage]:
    """Yield two running servers with one new database."""
    with ExitStack() as stack:
        if database == "sqlite":
            url = sqlite_url(folder)
        else:
            url = stack.enter_context(database_of(stack.enter_context(PostgresCluster())))
        stage = Stage(folder, url, members(folder, url, 2))
        stack.enter_context(stage.running())
        yield stage


def main() -> int:
    """Run the test with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restarts", type=int, default=5, help="of each server")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-rolling-") as name, stage_on(arguments.database, Path(name)) as on:
        tally, wrong = roll(on, Plan(arguments.restarts))
    say(
        f"{tally.done} requests, {len(tally.created)} of them writes, {2 * arguments.restarts} restarts; "
        f"{tally.later} times later, {tally.reconnected} times the other server"
    )
    return verdict(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Sends two kinds of requests in short alternating turns, and measures the server's processor time for each turn.

`python -m bench.support.slices` reads a `Contest` as JSON from its standard input and prints a list of `Slice`. All
connections stay open; the connections of one kind of requests are idle during the turns of the other kind. The server's
work after the last response of a turn counts for that turn, if the work is done within `_SETTLING` seconds.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Sequence

import msgspec

from bench.support.apart import answer, ask
from bench.support.https_load import Connection, Load, requests_of
from bench.support.processor import spent

_SETTLING = 0.01
"""Seconds."""


class Side(msgspec.Struct, frozen=True):
    """One side of the contest: requests of one kind."""

    load: Load
    """The requests, and the duration of a turn in seconds."""
    process: int
    """The processor time in seconds that the server has used so far."""


class Contest(msgspec.Struct, frozen=True):
    """A contest of two sides, and the number of turns of each side.

    One more turn of each side is run first and not counted.
    """

    one: Side
    other: Side
    turns: int


class Slice(msgspec.Struct, frozen=True):
    """One turn of both sides: the microseconds of processor time per request, for each side."""

    one: float
    other: float


def slices(contest: Contest) -> Sequence[Slice]:
    """Run the contest in its own process; raises CalledProcessError if a response is not as expected."""
    return ask("bench.support.slices", contest, list[Slice])


class _Gate:
    """A gate that passes requests on while it is open; connections wait while it is closed."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._waiting: list[_Gated] = []
        self._is_open = False
        self._connections = 0
        self.all_wait = asyncio.Event()
        """Set when all connections wait, so that their requests are completed."""

    def join(self) -> None:
        """Register a connection with the gate."""
        self._connections += 1

    def next(self, connection: _Gated) -> bytes | None:
        """Return the next request for a connection; None if the connection must wait."""
        if self._is_open:
            return next(self._requests)
        self._waiting.append(connection)
        if len(self._waiting) == self._connections:
            self.all_wait.set()
        return None

    def open(self) -> None:
        """Let the waiting connections continue."""
        self._is_open = True
        self.all_wait.clear()
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.send()

    def shut(self) -> None:
        """Let all connections wait."""
        self._is_open = False


class _Gated(Connection):
    """A connection that gets each request from a gate."""

    def __init__(self, load: Load, gate: _Gate, lost: asyncio.Future[None]) -> None:
        super().__init__(load, iter(()), [], lost)
        self._gate = gate
        gate.join()

    def send(self) -> None:
        """Send the next request if the gate is open."""
        request = self._gate.next(self)
        if request is not None:
            self.write(request)


class _Player:
    """The connections of one side."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._gate = _Gate(requests_of(side.load))
        self._lost = asyncio.get_running_loop().create_future()  # raises an exception after an unexpected response
        self._connections: list[_Gated] = []

    async def connect(self) -> None:
        load = self._side.load
        context = ssl.create_default_context(cafile=load.authority)
        for _ in range(load.connections):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: _Gated(load, self._gate, self._lost), load.host, load.port, ssl=context
            )
            self._connections.append(connection)

    async def play(self) -> float:
        """Run a turn; return the microseconds of the server's processor time per request."""
        answers, before = self._answers(), spent(self._side.process)
        self._gate.open()
        await asyncio.wait([self._lost], timeout=self._side.load.seconds)
        self._gate.shut()
        ended = asyncio.ensure_future(self._gate.all_wait.wait())
        await asyncio.wait([self._lost, ended], return_when=asyncio.FIRST_COMPLETED)
        if self._lost.done():
            self._lost.result()
            raise ConnectionError("the server has closed a connection")
        await asyncio.sleep(_SETTLING)
        return 1e6 * (spent(self._side.process) - before) / (self._answers() - answers)

    def _answers(self) -> int:
        return sum(each.answers for each in self._connections)


async def _run(contest: Contest) -> list[Slice]:
    one, other = _Player(contest.one), _Player(contest.other)
    for each in (one, other):
        await each.connect()
        await each.play()
    taken = []
    for number in range(contest.turns):
        if number % 2:
            mine = await one.play()
            taken.append(Slice(mine, await other.play()))
        else:
            theirs = await other.play()
            taken.append(Slice(await one.play(), theirs))
    return taken


if __name__ == "__main__":
    answer(Contest, _run)

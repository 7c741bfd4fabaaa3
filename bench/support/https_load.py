"""A load generator for HTTPS in its own process: closed loops on keep-alive connections, with little overhead.

`python -m bench.support.https_load` reads a `Load` as JSON from its standard input and prints a `Measured` as JSON. The
load generator parses only as much HTTP as it needs to find the end of a response, so that its own work does not limit
the rate.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from bench.support.apart import answer, ask

NUMBER_WIDTH = 26
_LAST_CHUNK = b"\r\n0\r\n\r\n"


class Load(msgspec.Struct, frozen=True):
    """The load: send `requests` in turn on `connections` connections for `seconds`, after `warm_up` seconds."""

    host: str
    port: int
    authority: str
    """The path of the certificate authority's file."""
    connections: int
    seconds: float
    requests: Sequence[str]
    """Whole HTTP requests; `{n}` is replaced by `NUMBER_WIDTH` characters that are different for each request."""
    warm_up: float = 0.5
    expect: int = 200
    once: bool = False
    """Whether the load ends after each request was sent once."""
    is_refused: bool = False
    """Whether the server may refuse requests with 429 (Too Many Requests); a refused client continues at once."""


class Measured(msgspec.Struct, frozen=True):
    """The result: numbers of responses and of body bytes, the measured seconds, and the latencies in milliseconds.

    `all_answers` also counts responses while connecting, during the warm-up and after the end. `ended` is the time of
    the last response within the measured period, in seconds of the system's monotonic clock.
    """

    answers: int
    all_answers: int
    bytes: int
    seconds: float
    p50: float
    p99: float
    ended: float

    @property
    def rate(self) -> float:
        """Return responses per second."""
        return self.answers / self.seconds


def measure(load: Load) -> Measured:
    """Run the load in its own process; raises CalledProcessError if a response is not as expected."""
    return ask("bench.support.https_load", load, Measured)


class Connection(asyncio.Protocol):
    """One closed loop: it sends a request after it has received the whole response to the previous request."""

    def __init__(self, load: Load, requests: Iterator[bytes], latencies: list[float], done: asyncio.Future[None]):
        """Create a connection that sends `requests` and records latencies.

        `done` is set when the connection ends; if the connection fails, `done` gets the error.
        """
        self._requests = requests
        self._latencies = latencies
        self._done = done
        expected = (load.expect, 429) if load.is_refused else (load.expect,)
        self._statuses = tuple(f"HTTP/1.1 {status} ".encode() for status in expected)
        self._head = b""
        # Number of remaining bytes of the body: negative while the head is read, None if the body is in chunks.
        self._left: int | None = -1
        self._end = b""  # the bytes that were received last, of a body in chunks
        self.bytes = 0
        self.answers = 0
        self.stopped = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self.send()

    def data_received(self, data: bytes) -> None:
        """Process a part of a response."""
        if self._left is not None and self._left < 0:
            data = self._head + data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._head = data
                return
            if not data.startswith(self._statuses):
                self._fail(data)
                return
            self._left = _length(data[:end].lower())
            data, self._head = data[end + 4 :], b""
        self.bytes += len(data)
        if self._left is None:
            self._end = (self._end + data[-len(_LAST_CHUNK) :])[-len(_LAST_CHUNK) :]
            ended = self._end == _LAST_CHUNK
        else:
            self._left -= len(data)
            ended = self._left == 0
        if ended:
            self._answered()

    def _answered(self) -> None:
        self._left, self._end = -1, b""
        self.answers += 1
        self._latencies.append(time.perf_counter() - self._sent)
        if self.stopped:
            self._transport.close()
        else:
            self.send()

    def connection_lost(self, error: Exception | None) -> None:
        """Record that the connection has ended."""
        if not self._done.done():
            self._done.set_result(None)

    def send(self) -> None:
        """Send the next request; close the connection if there is none."""
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
        else:
            self.write(request)

    def write(self, request: bytes) -> None:
        """Send a request."""
        self._sent = time.perf_counter()
        self._transport.write(request)

    def _fail(self, data: bytes) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(f"unexpected answer: {data[:600]!r}"))
        self._transport.close()


def _length(head: bytes) -> int | None:
    """Return the length of the body after an HTTP head in lower case; None if the body is chunked."""
    at = head.find(b"\r\ncontent-length: ")
    return int(head[at + 18 :].partition(b"\r\n")[0]) if at >= 0 else None


def requests_of(load: Load) -> Iterator[bytes]:
    """Yield the requests of a load, with `{n}` replaced."""
    number = 0
    stamp = f"{time.time_ns():018x}"
    while True:
        for request in load.requests:
            number += 1
            yield (request.replace("{n}", f"{stamp}-{number:07d}") if "{n}" in request else request).encode()
        if load.once:
            return


async def _run(load: Load) -> Measured:
    context = ssl.create_default_context(cafile=load.authority)
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    ended = [loop.create_future() for _ in range(load.connections)]
    requests = requests_of(load)
    connections = []
    for done in ended:
        _, connection = await loop.create_connection(
            lambda done=done: Connection(load, requests, latencies, done),  # type: ignore[misc]  # binds the variable
            load.host,
            load.port,
            ssl=context,
        )
        connections.append(connection)
    await asyncio.sleep(load.warm_up)
    latencies.clear()
    before, began = sum(each.bytes for each in connections), time.perf_counter()
    finished, _ = await asyncio.wait(
        ended,
        timeout=load.seconds,
        return_when=asyncio.ALL_COMPLETED if load.once else asyncio.FIRST_EXCEPTION,
    )
    took, ended_at = time.perf_counter() - began, time.monotonic()
    taken = sorted(latencies)
    moved = sum(each.bytes for each in connections) - before
    for each in connections:
        each.stopped = True
    await asyncio.gather(*ended)
    assert taken, f"no answer in {load.seconds} seconds; {len(finished)} connections were lost"
    every = sum(each.answers for each in connections)
    half, most = (taken[len(taken) * part // 100] * 1e3 for part in (50, 99))
    return Measured(len(taken), every, moved, took, half, most, ended_at)


if __name__ == "__main__":
    answer(Load, _run)

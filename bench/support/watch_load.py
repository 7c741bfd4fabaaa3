"""A thousand watchers in one process, which connect over TLS and measure when each watcher receives each event.

`python -m bench.support.watch_load` reads a `Watchers` as JSON from its standard input, and prints `ready` when all
watchers are connected. At the end of its input, or after `seconds`, the process prints a `Seen` as JSON. An event
contains the time (nanoseconds of the system's monotonic clock) at which the client began to send it, as
`"sent":"NUMBER"`.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import sys
import time
from collections.abc import Sequence
from typing import cast

import msgspec
import uvloop
from hpack import Encoder

from ctrlmgr.http.http2 import frames

_SENT = re.compile(rb'"sent":"(\d+)"')


class Watchers(msgspec.Struct, frozen=True):
    """A load of `count` watchers, each of which sends `request` and receives events.

    Each watcher has its own connection, unless `streams` is set: then this number of watchers shares an HTTP/2
    connection.
    """

    host: str
    port: int
    authority: str
    count: int
    request: str
    seconds: float
    streams: int = 0


class Seen(msgspec.Struct, frozen=True):
    """The result: the number of deliveries, their latencies in ms, and the deliveries of the slowest watcher."""

    deliveries: int
    fewest: int
    p50: float
    p99: float
    worst: float


class _Watcher(asyncio.Protocol):
    """A connection of one watcher, which counts its events; an event may arrive in several pieces."""

    def __init__(self, latencies: list[float], ready: asyncio.Future[None]) -> None:
        self._latencies = latencies
        self._ready = ready
        self._rest = b""
        self.seen = 0

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if not self._ready.done():
            assert data.startswith(b"HTTP/1.1 200"), data[:500]
            self._ready.set_result(None)
        data = self._rest + data
        end = data.rfind(b"\n")
        self._rest = data[end + 1 :]
        for match in _SENT.finditer(data, 0, end + 1):
            self.seen += 1
            self._latencies.append((now - int(match[1])) / 1e6)


class _Multiplexed(asyncio.Protocol):
    """An HTTP/2 connection that several watchers share, with unlimited flow control."""

    def __init__(self, watchers: Watchers, latencies: list[float], ready: asyncio.Future[None]) -> None:
        self._watchers = watchers
        self._latencies = latencies
        self._ready = ready
        self._rest = b""
        self._begun = 0
        self.seen = dict.fromkeys(range(1, 2 * watchers.streams, 2), 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to watch on every stream of the connection."""
        encoder, told = Encoder(), {frames.Setting.INITIAL_WINDOW_SIZE: frames.WIDEST}
        out = [frames.PREFACE, frames.settings(told), frames.window_update(0, frames.WIDEST - 65_535)]
        fields = _fields(self._watchers)
        out += [frames.headers(stream, encoder.encode(fields), frames.END_STREAM) for stream in self.seen]
        cast(asyncio.Transport, transport).write(b"".join(out))

    def data_received(self, data: bytes) -> None:
        """Count the events that each stream receives.

        A frame contains only whole events, because the events are short.
        """
        now = time.monotonic_ns()
        data, at = self._rest + data, 0
        while len(data) - at >= 9:
            end = at + 9 + int.from_bytes(data[at : at + 3], "big")
            if end > len(data):
                break
            if data[at + 3] == frames.HEADERS:
                assert data[at + 9] == 0x88, data[at:end]  # the encoded status 200
                self._begun += 1
                if self._begun == len(self.seen):
                    self._ready.set_result(None)
            elif data[at + 3] == frames.DATA:
                stream = int.from_bytes(data[at + 5 : at + 9], "big")
                for match in _SENT.finditer(data, at, end):
                    self.seen[stream] += 1
                    self._latencies.append((now - int(match[1])) / 1e6)
            at = end
        self._rest = data[at:]


def _fields(watchers: Watchers) -> list[tuple[str, str]]:
    """Return a request in the form of HTTP/2."""
    lines = watchers.request.split("\r\n")
    method, path, _ = lines[0].split()
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines[1:]) if value]
    pseudo = [(":method", method), (":scheme", "https"), (":path", path), (":authority", dict(headers)["host"])]
    return pseudo + [each for each in headers if each[0] != "host"]


async def _run(watchers: Watchers) -> Seen:
    latencies: list[float] = []
    counts = await (_watch_together if watchers.streams else _watch_alone)(watchers, latencies)
    return _seen(latencies, counts)


async def _watch_together(watchers: Watchers, latencies: list[float]) -> list[int]:
    context = ssl.create_default_context(cafile=watchers.authority)
    context.set_alpn_protocols(["h2"])
    loop = asyncio.get_running_loop()
    connections: list[_Multiplexed] = []
    for _ in range(watchers.count // watchers.streams):
        ready = loop.create_future()
        _, connection = await loop.create_connection(
            lambda ready=ready: _Multiplexed(watchers, latencies, ready),  # type: ignore[misc]  # binds the variable
            watchers.host,
            watchers.port,
            ssl=context,
        )
        await ready
        connections.append(connection)
    print("ready", flush=True)
    await asyncio.sleep(watchers.seconds)
    return [seen for connection in connections for seen in connection.seen.values()]


async def _watch_alone(watchers: Watchers, latencies: list[float]) -> list[int]:
    context = ssl.create_default_context(cafile=watchers.authority)
    loop = asyncio.get_running_loop()
    connections: list[_Watcher] = []
    readiness: list[asyncio.Future[None]] = []
    for _ in range(watchers.count):
        ready = loop.create_future()
        transport, watcher = await loop.create_connection(
            lambda ready=ready: _Watcher(latencies, ready),  # type: ignore[misc]  # binds the variable
            watchers.host,
            watchers.port,
            ssl=context,
        )
        transport.write(watchers.request.encode())
        connections.append(watcher)
        readiness.append(ready)
    await asyncio.gather(*readiness)
    print("ready", flush=True)
    await asyncio.sleep(watchers.seconds)
    return [watcher.seen for watcher in connections]


def _seen(latencies: Sequence[float], counts: Sequence[int]) -> Seen:
    taken = sorted(latencies)
    assert taken, "no event reached a watcher"
    return Seen(len(taken), min(counts), taken[len(taken) // 2], taken[len(taken) * 99 // 100], taken[-1])


def main() -> None:
    """Read a `Watchers` from standard input, and run the watchers."""
    watchers = msgspec.json.decode(sys.stdin.buffer.readline(), type=Watchers)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        seen = runner.run(_run(watchers))
    print(msgspec.json.encode(seen).decode(), flush=True)


if __name__ == "__main__":
    main()

"""A thousand watchers in one process: connects them over TLS, and says when each event has reached each of them.

`python -m bench.watch_load` reads a `Watchers` as JSON from its standard input, prints `ready` once all are
connected, and at the end of its input (or after `seconds`) prints a `Seen` as JSON. An event carries the moment
(nanoseconds of the system's monotonic clock) at which the client began to make it, as `"sent":"NUMBER"`.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import sys
import time
from collections.abc import Sequence

import msgspec
import uvloop

_SENT = re.compile(rb'"sent":"(\d+)"')


class Watchers(msgspec.Struct, frozen=True):
    """Whom to watch: `count` connections that each send `request` and listen."""

    host: str
    port: int
    authority: str
    count: int
    request: str
    seconds: float


class Seen(msgspec.Struct, frozen=True):
    """What arrived: deliveries, their latencies in milliseconds, and the deliveries of the slowest connection."""

    deliveries: int
    fewest: int
    p50: float
    p99: float
    worst: float


class _Watcher(asyncio.Protocol):
    """One connection that counts the events it is sent; an event may come in pieces."""

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


async def _run(watchers: Watchers) -> Seen:
    context = ssl.create_default_context(cafile=watchers.authority)
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
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
    return _seen(latencies, [watcher.seen for watcher in connections])


def _seen(latencies: Sequence[float], counts: Sequence[int]) -> Seen:
    taken = sorted(latencies)
    assert taken, "no event reached a watcher"
    return Seen(len(taken), min(counts), taken[len(taken) // 2], taken[len(taken) * 99 // 100], taken[-1])


def main() -> None:
    """Watch what standard input says."""
    watchers = msgspec.json.decode(sys.stdin.buffer.readline(), type=Watchers)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        seen = runner.run(_run(watchers))
    print(msgspec.json.encode(seen).decode(), flush=True)


if __name__ == "__main__":
    main()

"""Measures watches over TLS: the delay of an event to a thousand watchers, and the cost of an idle watcher.

The limit is a bare server with the same certificate and the same number of connections; it only writes one frame to
each connection. The bare server's delay is the time from before the first write until the last client has received the
frame. The delay of our server is the time from before the request that causes the event until the last client has
received the event. The delay of our server includes validation, the disk and the watch cache. Each client has its own
connection; with HTTP/2, a hundred clients share a connection, like client-go's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.report import Claim, report, run
from bench.support.served import CLIENT_CORE, Served, free_port, on_core, running, serving
from bench.support.watch_load import Seen, Watchers

WATCHERS = 1000
STREAMS = 100
"""Number of watchers that share a connection with HTTP/2."""
EVENTS_PER_SECOND = 100
SECONDS = 5.0
PATH = "/api/v1/namespaces/default/configmaps"
KILOBYTE = 1024


@contextmanager
def watching(
    served: Served, count: int, request: str, seconds: float, streams: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    """Keep `count` watchers connected while the block runs; `streams` watchers share a connection."""
    watchers = Watchers(served.host, served.port, served.authority, count, request, seconds, streams)
    command = [sys.executable, "-m", "bench.support.watch_load"]
    with on_core(CLIENT_CORE):
        started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with started as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(watchers) + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"ready\n"
        yield process


def seen(process: subprocess.Popen[bytes]) -> Seen:
    """Return the watchers' result when they have finished."""
    assert process.stdout is not None
    return msgspec.json.decode(process.stdout.readline(), type=Seen)


def write_events(served: Served, stop: threading.Event, written: list[int]) -> None:
    """Change one object at this rate; each change contains the time at which it was sent.

    `written` counts the changes that were sent so far.
    """
    from http.client import HTTPSConnection
    from ssl import create_default_context

    context = create_default_context(cafile=served.authority)
    connection = HTTPSConnection(served.host, served.port, context=context)
    headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/merge-patch+json"}
    began, number = time.monotonic(), 0
    while not stop.wait(max(0.0, began + number / EVENTS_PER_SECOND - time.monotonic())):
        number += 1
        body = json.dumps({"data": {"sent": str(time.monotonic_ns())}})
        connection.request("PATCH", f"{PATH}/watched", body, headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        written.append(number)
    connection.close()


def ours(served: Served, streams: int = 0) -> tuple[Seen, float]:
    """Measure deliveries while one client writes; return the deliveries, and the rate of writes in events/s."""
    # The watch begins now, because existing events contain times long before the watchers connected.
    version = msgspec.json.decode(served.open("GET", PATH))["metadata"]["resourceVersion"]
    query = f"watch=true&fieldSelector=metadata.name%3Dwatched&resourceVersion={version}"
    with watching(served, WATCHERS, served.request("GET", f"{PATH}?{query}"), SECONDS + 1, streams) as process:
        stop, written = threading.Event(), list[int]()
        writer = threading.Thread(target=write_events, args=(served, stop, written))
        writer.start()
        stop.wait(SECONDS)
        stop.set()
        writer.join()
        got = seen(process)
    assert got.fewest == len(written), f"{len(written)} events were written, the slowest watcher got {got.fewest}"
    return got, len(written) / SECONDS


def bare_pass(like: Served, folder: Path) -> Seen:
    """Measure single rounds in which the bare server writes to the same number of connections."""
    port = free_port()
    command = [sys.executable, "-m", "bench.support.bare_fan_out", str(port), str(folder), str(WATCHERS)]
    with running(command, folder / "fan-out.log"):
        time.sleep(1.0)
        other = like._replace(port=port)
        with watching(other, WATCHERS, other.request("GET", "/"), SECONDS) as process:
            return seen(process)


def idle_cost(served: Served) -> float:
    """Return the bytes of memory that one idle watcher costs the server."""
    before = served.resident()
    request = served.request("GET", f"{PATH}?watch=true&resourceVersion=0")
    with watching(served, WATCHERS, request, 2.0) as process:
        time.sleep(1.0)
        cost = (served.resident() - before) / WATCHERS
        assert process.poll() is None
        process.terminate()
    return cost


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as served:
        fields = {"metadata": {"name": "watched"}, "data": {"sent": str(time.monotonic_ns())}}
        served.open("POST", PATH, json.dumps(fields).encode())
        cost = idle_cost(served)
        limit = bare_pass(served, Path(name))
        got, rate = ours(served)
        shared, shared_rate = ours(served, STREAMS)
    print(f"{got.deliveries:,} deliveries, p50 {got.p50:.1f} ms, p99 {got.p99:.1f} ms, worst {got.worst:.1f} ms")
    print(f"each watcher got all {got.fewest} events; a bare pass takes {limit.p99:.1f} ms (p50 {limit.p50:.1f})")
    claims = [
        Claim(
            "events written a second during the measurement of watchers",
            min(rate, shared_rate),
            EVENTS_PER_SECOND,
            0.95,
            "events/s",
        ),
        Claim("time to send an event to 1,000 TLS watchers, p99", got.p99, limit.p99, 3.0, "ms", at_most=True),
        Claim(
            "time to send an event to 1,000 HTTP/2 watchers, 100 on each connection, p99",
            shared.p99,
            limit.p99,
            1.0,
            "ms",
            at_most=True,
        ),
        Claim("memory of an idle TLS watcher", cost / KILOBYTE, 50.0, 1.0, "KB", at_most=True),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

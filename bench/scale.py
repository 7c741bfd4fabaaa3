"""Measures growth with a log: the same 2,000 objects after 100,000 and 1,000,000 events, on SQLite and PostgreSQL.

The benchmark writes the log through the same interface as a server, so that the hash chain is valid; another process
serves the log. The duration of the start, the memory, and the duration of requests and of a watch depend on the number
of objects, which is the same at both sizes. The size of the database and the durations of its verification and
compaction depend on the number of events. Each value at the larger size is compared with the value at the smaller size
in the same run, and printed with the exponent of its growth: 0 means constant, 1 means linear in the number of events.

`--events N` changes the size of the larger log; a run with 10000000 events takes nearly an hour.
"""

from __future__ import annotations

import http.client
import json
import math
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

from bench.report import Claim, report, run
from bench.support.callers import AUTHOR
from bench.support.served import Served, serving
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import SystemClock, format_time_seconds
from ctrlmgr.eventlog import EventLog, EventType, Proposal, open_log
from ctrlmgr.testing.postgres import PostgresCluster

SMALLER = 100_000
LARGER = 1_000_000
OBJECTS = 2_000
PAST = 1_000
"""The number of events between the beginning of a watch and the head of the log."""
ASKED = 100
SETTLED = 3.0
"""Seconds after which a server that has become ready is idle."""

_GROUP = 500
_PATH = "/api/v1/namespaces/bench/configmaps"
_STARTED = 1_700_000_000_000_000

FLAT = ("start to ready, ms", "memory, MB", "GET, us", "LIST of 500, us", "create, us", "watch from the past, us")
"""Names of the measured values that must not grow with the number of events.

The value at the larger size may be up to half as large again, because two runs may differ that much.
"""
LINEAR = ("verify, ms", "compact one half, ms", "size on disk, kB")
"""Names of the measured values that may grow linearly with the number of events, and by a half more."""


class Place(NamedTuple):
    """A database to fill: its URL, and a function that returns its size in bytes."""

    name: str
    url: str
    size: Callable[[], int]


def config_map(number: int, version: int) -> Object:
    """Return a version of one of the objects, with 1 KB."""
    metadata = {
        "name": f"c-{number}",
        "namespace": "bench",
        "uid": f"00000000-0000-4000-8000-{number:012}",
        "creationTimestamp": format_time_seconds(_STARTED),
    }
    data = {"version": str(version), "text": "x" * 800}
    return Object.from_dict({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})


def namespace() -> Object:
    """Return the namespace of the objects."""
    metadata = {"name": "bench", "uid": "00000000-0000-4000-9000-000000000000"}
    fields = {"kind": "Namespace", "apiVersion": "v1", "metadata": metadata, "spec": {"finalizers": ["kubernetes"]}}
    return Object.from_dict({**fields, "status": {"phase": "Active"}})


def fill(log: EventLog, events: int) -> None:
    """Append until the log has this number of events; each append changes the next object."""
    heads: list[Revision] = [0] * OBJECTS
    log.append([Proposal(EventType.ADDED, namespace(), 0)], author=AUTHOR)
    for first in range(1, events, _GROUP):
        numbers = range(first, min(first + _GROUP, events))
        proposals = [
            Proposal(
                EventType.MODIFIED if heads[number % OBJECTS] else EventType.ADDED,
                config_map(number % OBJECTS, number),
                heads[number % OBJECTS],
            )
            for number in numbers
        ]
        for number, event in zip(numbers, log.append(proposals, author=AUTHOR), strict=True):
            heads[number % OBJECTS] = event.revision


class Client:
    """A keep-alive connection."""

    def __init__(self, served: Served) -> None:
        """Return a connection to a server."""
        context = ssl.create_default_context(cafile=served.authority)
        self._connection = http.client.HTTPSConnection(served.host, served.port, context=context)
        self._headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: str | None = None) -> bytes:
        """Send a GET for a path, and return the response's body."""
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        data = answer.read()
        assert answer.status < 300, data
        return data

    def watch(self, revision: Revision, events: int) -> None:
        """Watch from a revision on, and read this number of events."""
        path = f"{_PATH}?watch=true&timeoutSeconds=30&resourceVersion={revision}"
        self._connection.request("GET", path, None, self._headers)
        answer = self._connection.getresponse()
        for _ in range(events):
            assert answer.readline()
        self._connection.close()


def microseconds(ask: Callable[[int], object], times: int) -> float:
    """Return the median time of a call."""
    took = []
    for number in range(times):
        began = time.perf_counter()
        ask(number)
        took.append((time.perf_counter() - began) * 1e6)
    return median(took)


def requests(served: Served, events: int) -> Iterator[tuple[str, float]]:
    """Measure the durations of a client's requests on a server whose log has this number of events."""
    client = Client(served)
    yield "GET, us", microseconds(lambda n: client.ask("GET", f"{_PATH}/c-{n + 1}"), ASKED)
    yield "LIST of 500, us", microseconds(lambda _: client.ask("GET", f"{_PATH}?limit=500"), ASKED // 4)
    yield "watch from the past, us", microseconds(lambda _: client.watch(events - PAST, PAST), 5)

    def create(number: int) -> object:
        body: dict[str, Any] = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": f"new-{number}"}}
        return client.ask("POST", _PATH, json.dumps(body))

    yield "create, us", microseconds(create, ASKED)


def command(*arguments: str) -> float:
    """Return the duration of a ctrlmgr command in milliseconds."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "ctrlmgr", *arguments], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1e3


def measure(place: Place, events: int, folder: Path) -> dict[str, float]:
    """Fill a database with a log, and measure all values."""
    began = time.perf_counter()
    with closing(open_log(place.url, clock=SystemClock(), random=Random(1), migrate=True)) as log:
        fill(log, events)
    print(f"{place.name}: {events:,} events of {OBJECTS:,} objects in {time.perf_counter() - began:.0f} s", flush=True)
    found = {"size on disk, kB": place.size() / 1e3}
    found["verify, ms"] = command("verify", "--database", place.url)
    began = time.perf_counter()
    with serving(folder, "--database", place.url, "--controllers", "namespace-controller") as served:
        found["start to ready, ms"] = (time.perf_counter() - began) * 1e3
        time.sleep(SETTLED)
        found["memory, MB"] = served.resident() / 1e6
        found.update(requests(served, events))
    found["compact one half, ms"] = command("compact", "--database", place.url, "--before", str(events // 2))
    return found


def grown(place: str, small: Mapping[str, float], large: Mapping[str, float], times: float) -> Iterator[Claim]:
    """Print how each value grows, and yield the claims."""
    for what in (*FLAT, *LINEAR):
        exponent = math.log(large[what] / small[what]) / math.log(times)
        print(f"{place:<10} {what:<28} {small[what]:>12,.0f} {large[what]:>12,.0f}  exponent {exponent:>5.2f}")
        name, unit = what.split(", ")
        limit = small[what] * (times if what in LINEAR else 1)
        yield Claim(f"{place} {name}, {times:g} times the events", large[what], limit, 1.5, unit, at_most=True)


def on_sqlite(folder: Path, events: int) -> dict[str, float]:
    """Measure a SQLite file with this number of events."""
    file = folder / "log.db"
    return measure(Place("SQLite", f"sqlite:///{file}", lambda: file.stat().st_size), events, folder)


def on_postgres(cluster: PostgresCluster, folder: Path, events: int) -> dict[str, float]:
    """Measure a PostgreSQL database with this number of events."""
    name = f"log_{events}"
    cluster.execute(f"CREATE DATABASE {name}")

    def size() -> int:
        return int(cluster.execute(f"SELECT pg_database_size('{name}')")[0][0])

    return measure(Place("PostgreSQL", cluster.url(name), size), events, folder)


def main(arguments: Sequence[str]) -> int:
    """Print how each value grows; with --check, exit with code 1 if a value grows that must not grow."""
    larger = int(arguments[arguments.index("--events") + 1]) if "--events" in arguments else LARGER
    sizes, claims = (min(SMALLER, larger // 10), larger), list[Claim]()
    found: list[dict[str, float]] = []
    for events in sizes:
        with tempfile.TemporaryDirectory() as name:
            found.append(on_sqlite(Path(name), events))
    claims += grown("SQLite", found[0], found[1], larger / sizes[0])
    with PostgresCluster() as cluster:
        found = []
        for events in sizes:
            with tempfile.TemporaryDirectory() as name:
                found.append(on_postgres(cluster, Path(name), events))
    claims += grown("PostgreSQL", found[0], found[1], larger / sizes[0])
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

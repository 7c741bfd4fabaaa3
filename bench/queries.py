"""Measures queries on a log of 1,000,000 events, on SQLite and PostgreSQL: ready-made queries and earlier states.

The log resembles the log of a real cluster. Pods of services are created, become ready and are deleted. A controller
writes Endpoints and EndpointSlices; several pods cause each write. Leases are renewed, and leaders change. The
benchmark writes the log directly to the tables (bodies of about 1 KB, arbitrary hashes), because it measures only
reading. A result is the median of three runs within one process. The measured time includes fetching every row, but not
the start of Python. `--events N` creates a smaller log.
"""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psycopg

from bench.report import Claim, report, run
from ctrlmgr.api.resource import ENDPOINTS, PODS, Key
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import migrate_log
from ctrlmgr.inspection import causes, historical_state
from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.inspection.queries import questions
from ctrlmgr.testing.postgres import PostgresCluster

EVENTS = 1_000_000
SERVICES_PER_EVENT = 1 / 400
PODS_PER_SERVICE = 16
ASKINGS = 3
_START = 1_700_000_000_000_000
_EVERY = 2_000  # microseconds between two events
_CONTROLLER = "system:controller:endpoint-controller"
_TERM = 50_000  # number of events in the term of a leader
_CHUNK = 20_000


class Place(NamedTuple):
    """An object of the log: its key, and the values that are inserted in its body."""

    id: int
    resource: str
    kind: str
    api_version: str
    namespace: str
    name: str
    service: str


class Rows(NamedTuple):
    """The rows for each table that were created so far."""

    events: list[tuple[Any, ...]]
    reconciles: list[tuple[Any, ...]]
    triggers: list[tuple[int, int]]


class Story:
    """Creates the rows of a log, event by event, and stores the state of each object."""

    def __init__(self, events: int) -> None:
        """Create a log of this number of events."""
        self.events = events
        self.places: list[Place] = []
        self.heads: dict[int, int] = {}
        self.births: dict[int, int] = {}
        self._random = random.Random(1)
        services = max(8, int(events * SERVICES_PER_EVENT))
        self.namespaces = max(1, services // 25)
        self.pods: list[list[Place]] = []
        self.written: list[tuple[Place, Place]] = []
        for number in range(services):
            self._plan_service(number)
        self.lease = self._place("leases.coordination.k8s.io", "Lease", "coordination.k8s.io/v1", "kube-system", "kcm")

    def _place(self, resource: str, kind: str, api_version: str, namespace: str, name: str, service: str = "") -> Place:
        place = Place(len(self.places) + 1, resource, kind, api_version, namespace, name, service)
        self.places.append(place)
        return place

    def _plan_service(self, number: int) -> None:
        namespace, name = f"ns-{number % self.namespaces}", f"svc-{number}"
        self._place("services", "Service", "v1", namespace, name)
        self._place("ipaddresses.networking.k8s.io", "IPAddress", "networking.k8s.io/v1", "", f"10.{number}", name)
        self.written.append(
            (
                self._place("endpoints", "Endpoints", "v1", namespace, name, name),
                self._place(
                    "endpointslices.discovery.k8s.io", "EndpointSlice", "discovery.k8s.io/v1", namespace, name, name
                ),
            )
        )
        pods = [self._place("pods", "Pod", "v1", namespace, f"{name}-{i}", name) for i in range(PODS_PER_SERVICE)]
        self.pods.append(pods)

    def chunks(self) -> Iterator[Rows]:
        """Yield the rows, several thousand events at a time."""
        rows = Rows([], [], [])
        revision = 0
        for place in self.places:
            revision += 1
            self._write(rows, revision, place)
        while revision < self.events:
            number = self._random.randrange(len(self.pods))
            triggers = []
            for pod in self._random.sample(self.pods[number], 4):
                revision += 1
                self._write(rows, revision, pod)
                triggers.append(revision)
            rows.reconciles.append(
                (revision, "endpoint-controller", f"ns/svc-{number}", 1, _START + revision * _EVERY,
                 self._random.randrange(200, 5000), "ok", "")
            )  # fmt: skip
            rows.triggers.extend((revision, trigger) for trigger in triggers)
            cause = revision
            for place in (*self.written[number], *([self.lease] if number % 5 == 0 else [])):
                revision += 1
                self._write(rows, revision, place, cause=cause)
            if len(rows.events) >= _CHUNK:
                yield rows
                rows = Rows([], [], [])
        self.events = revision
        yield rows

    def _write(self, rows: Rows, revision: int, place: Place, cause: int = 0) -> None:
        previous = self.heads.get(place.id, 0)
        self.births.setdefault(place.id, revision)
        self.heads[place.id] = revision
        actor = _CONTROLLER if cause else f"system:node:node-{place.id % 100}"
        term = revision // _TERM + 1 if cause else 0
        rows.events.append(
            (revision, place.id, previous, 2 if previous else 1, _START + revision * _EVERY, actor, "bench", term,
             cause, revision, b"h" * 32, self._body(place, revision))
        )  # fmt: skip

    def _body(self, place: Place, revision: int) -> str:
        labels = {"kubernetes.io/service-name": place.service, "app": place.service}
        metadata = {"name": place.name, "namespace": place.namespace, "uid": f"uid-{place.id}", "labels": labels}
        fields: dict[str, Any] = {"kind": place.kind, "apiVersion": place.api_version, "metadata": metadata}
        addresses = [f"10.0.{revision % 250}.{i}" for i in range(6)]
        if place.kind == "Endpoints":
            fields["subsets"] = [{"addresses": [{"ip": each} for each in addresses], "ports": [{"port": 80}]}]
        elif place.kind == "EndpointSlice":
            fields["endpoints"] = [{"addresses": [each], "conditions": {"ready": True}} for each in addresses]
        elif place.kind == "IPAddress":
            fields["spec"] = {"parentRef": {"resource": "services", "namespace": "ns-0", "name": place.service}}
        else:
            fields["spec"] = {"holderIdentity": f"holder-{revision}", "text": "x" * 700}
        return json.dumps(fields, separators=(",", ":"))

    def objects(self) -> list[tuple[Any, ...]]:
        """Return the final rows of the table `object`."""
        return [
            (each.id, each.resource, each.namespace, each.name, f"uid-{each.id}", self.births[each.id],
             self.heads[each.id], False)
            for each in self.places
        ]  # fmt: skip


_EVENT = ("revision", "object_id", "previous", "type", "recorded_at", "actor", "user_agent", "term", "reconcile_id",
          "append_id", "hash", "body")  # fmt: skip
_OBJECT = ("id", "resource", "namespace", "name", "uid", "create_revision", "head_revision", "deleted")
_RECONCILE = ("id", "controller", "key", "attempt", "started_at", "duration", "outcome", "message")
_TRIGGER = ("reconcile_id", "revision")

Insert = Callable[[str, Sequence[str], Sequence[tuple[Any, ...]]], None]


def fill(story: Story, insert: Insert) -> None:
    """Write all rows of the log, several thousand events at a time."""
    for rows in story.chunks():
        insert("event", _EVENT, rows.events)
        insert("reconcile", _RECONCILE, rows.reconciles)
        insert("reconcile_trigger", _TRIGGER, rows.triggers)
    insert("object", _OBJECT, story.objects())


def fill_sqlite(url: str, story: Story) -> None:
    """Create and fill a SQLite file."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")

    def insert(table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * len(columns))
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
        connection.execute("COMMIT")

    fill(story, insert)
    connection.execute("UPDATE log_head SET revision = ?", (story.events,))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def fill_postgres(url: str, story: Story) -> None:
    """Fill and analyze a PostgreSQL database, as autovacuum would."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:

        def insert(table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
            with connection.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)

        fill(story, insert)
        connection.execute("UPDATE log_head SET revision = %s", (story.events,))
        connection.execute("VACUUM ANALYZE")


def milliseconds(ask: Callable[[], object]) -> float:
    """Return the median time of a query."""
    took = []
    for _ in range(ASKINGS):
        began = time.perf_counter()
        ask()
        took.append((time.perf_counter() - began) * 1000)
    return median(took)


def claims(database: Database, story: Story) -> Iterator[Claim]:
    """Run all queries; yield their times as claims."""
    half = story.events // 2
    endpoints, _ = story.written[0]
    pod = story.pods[0][0]
    given = {
        "between": {"from": str(half), "to": str(half + 200)},
        "effects": {"revision": "head"},
        "endpoints": {"namespace": endpoints.namespace, "service": endpoints.name},
        "allocations": {"namespace": "ns-0"},
        "history": {"resource": "endpoints", "namespace": endpoints.namespace, "name": endpoints.name},
        "state": {"resource": "endpoints", "at": str(half)},
        "why": {"revision": "head"},
    }
    name = database.dialect.removesuffix("ql")
    newest = story.heads[endpoints.id]

    def claim(what: str, limit: float, ask: Callable[[], object]) -> Claim:
        return Claim(f"{name} {what}", milliseconds(ask), limit, 1, "ms", at_most=True)

    for question in questions().values():
        values = question.bind(given.get(question.name, {}), lambda text: newest if text == "head" else int(text))
        yield claim(f"SQL query {question.name}", 1000, lambda q=question, v=values: database.query(q.statement, v))  # type: ignore[misc]  # mypy cannot infer a lambda's defaults
    one = {"namespace": pod.namespace, "name": pod.name}
    yield claim(
        "read of one object at a past revision", 200, lambda: historical_state.objects(database, PODS, **one, at=half)
    )
    yield claim("read of all pods at a past revision", 2000 * len(story.pods) * PODS_PER_SERVICE / 10_000,
                lambda: historical_state.objects(database, PODS, at=half))  # fmt: skip
    key = Key(endpoints.namespace, endpoints.name)
    yield claim("history", 100, lambda: historical_state.history(database, ENDPOINTS, key, until=story.events))
    yield claim("why", 200, lambda: causes.why(database, newest))
    yield claim("effects", 200, lambda: causes.effects(database, newest - 3))
    yield claim("diff over 1,000 events", 1000, lambda: historical_state.between(database, half, half + 1000))


def measure(url: str, fill_database: Callable[[str, Story], None], events: int) -> list[Claim]:
    """Create a log of this number of events at `url`, run all queries, and return their times as claims."""
    migrate_log(url, clock=SystemClock(), random=random.Random(1))
    story = Story(events)
    began = time.perf_counter()
    fill_database(url, story)
    print(f"{story.events:,} events, {len(story.places):,} objects, filled in {time.perf_counter() - began:.0f} s")
    with open_database(url) as database:
        return list(claims(database, story))


def main(arguments: Sequence[str]) -> int:
    """Print the claims; with --check, exit with code 1 if a claim fails."""
    events = int(arguments[arguments.index("--events") + 1]) if "--events" in arguments else EVENTS
    with tempfile.TemporaryDirectory() as folder:
        found = measure(f"sqlite:///{Path(folder)}/log.db", fill_sqlite, events)
    with PostgresCluster(settings={"fsync": "off"}) as cluster:
        cluster.execute("CREATE DATABASE log")
        found += measure(cluster.url("log"), fill_postgres, events)
    return report(found, arguments)


if __name__ == "__main__":
    run(main, __doc__)

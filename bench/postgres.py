"""Measures PostgreSQL: group commit compared with one `unnest` statement per batch, and single appends with `pgbench`.

Our code and the limits use the same temporary server with its durable defaults, and are measured in alternating turns.

- Group commit: 64 callers append events of 1 KB. The statement that is the limit writes the same rows (events and
  objects), 64 appends per batch. The limit sends each batch in autocommit mode, as a prepared statement with binary
  array parameters, without checks, revisions, hashes or responses. The limit is measured twice: with lists that psycopg
  adapts, and with binary arrays as our writer sends them.
- Single appends: one caller appends through the log's committer. The limit is pgbench, which calls the same SQL
  function as an append, as a prepared statement with the same payload.
"""

from __future__ import annotations

import gc
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from bench.report import Claim, report, run
from bench.support.callers import AUTHOR, Work, on_a_loop, on_threads, rate
from ctrlmgr.api.object import Object
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import EventLog, EventType, Proposal, migrate_log, open_log
from ctrlmgr.eventlog.postgres.arrays import BigintArray, BooleanArray, ByteaArray, IntegerArray, TextArray, register
from ctrlmgr.testing.postgres import PostgresCluster, find_program

CALLERS = 64
PER_CALLER = 30
SINGLES = 200
ROUNDS = 15
_MOMENT = 1_700_000_000_000_000


def pod(name: str, version: int) -> Object:
    """Return a pod of 1 KB."""
    return Object.from_dict(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "bench", "uid": f"00000000-0000-4000-8000-{name:0>12}"},
            "data": f"{version}" + "x" * 870,
        }
    )


def new_objects(number: int) -> Work:
    """Return the creations of one round; no other round creates the same objects."""
    return _work(number, EventType.ADDED, 0)


def updates(number: int) -> Work:
    """Return changes of the objects that `new_objects` creates in the same round."""
    return _work(number, EventType.MODIFIED, None)


def _work(number: int, type: EventType, expected: int | None) -> Work:
    first = number * CALLERS * PER_CALLER
    return [
        [Proposal(type, pod(f"p{first + i * CALLERS + caller + 1}", type), expected) for i in range(PER_CALLER)]
        for caller in range(CALLERS)
    ]


_INSERT_EVENTS = (
    "INSERT INTO event (revision, object_id, previous, type, recorded_at, actor, user_agent, term, reconcile_id,"
    " append_id, hash, body) SELECT * FROM unnest(%b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b)"
)
_INSERT_OBJECTS = (
    "WITH o AS (INSERT INTO object (id, resource, namespace, name, uid, create_revision, head_revision, deleted)"
    " SELECT * FROM unnest(%b, %b, %b, %b, %b, %b, %b, %b)) "
)
_UPDATE_OBJECTS = (
    "WITH o AS (UPDATE object o SET uid = n.uid, create_revision = n.created, head_revision = n.head,"
    " deleted = n.deleted FROM unnest(%b, %b, %b, %b, %b) n(id, uid, created, head, deleted) WHERE o.id = n.id) "
)


Column = tuple[Any, list[Any]]
"""The array class and the values for one column of a batch."""


class Inserter:
    """The limit of group commit: it writes the same rows with one statement per batch, built before the measured time.

    If `packed` is set, it sends whole arrays as our writer does; otherwise psycopg adapts lists, as in every other
    statement.
    """

    def __init__(self, url: str, *, packed: bool) -> None:
        """Connect to the database, and disable other plans so that the planner uses an index for the updates."""
        self._connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True, prepare_threshold=0)
        register(self._connection)
        for plan in ("seqscan", "hashjoin", "mergejoin", "material"):
            self._connection.execute(f"SET enable_{plan} = off".encode())
        self._connection.execute("SET jit = off")
        self._packed = packed
        self._revision = 0

    def insert_all(self, work: Work) -> float:
        """Write the rows of `work`, in batches of one proposal of each caller; return events per second."""
        batches = []
        for proposals in zip(*work, strict=True):
            batches.append(_batch(proposals, self._revision + 1, text=bytes if self._packed else bytes.decode))
            self._revision += len(proposals)
        began = time.perf_counter()
        for statement, columns in batches:
            parameters = [array.of(values) if self._packed else values for array, values in columns]
            self._connection.execute(statement, parameters)
        return sum(map(len, work)) / (time.perf_counter() - began)

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


def _batch(batch: Sequence[Proposal], first: int, *, text: Callable[[bytes], Any]) -> tuple[bytes, list[Column]]:
    """Return the statement and the columns that write `batch`; the first event gets the revision `first`."""
    size = len(batch)
    added = batch[0].type is EventType.ADDED
    revisions = list(range(first, first + size))
    ids = revisions if added else [int(proposal.object.name[1:]) for proposal in batch]
    objects: list[Column] = [
        (BigintArray, ids),
        (TextArray, [text(b"pods")] * size),
        (TextArray, [text(b"bench")] * size),
        (TextArray, [text(proposal.object.name.encode()) for proposal in batch]),
        (TextArray, [text(proposal.object.uid.encode()) for proposal in batch]),
        (BigintArray, revisions),
        (BigintArray, revisions),
        (BooleanArray, [False] * size),
    ]
    events: list[Column] = [
        (BigintArray, revisions),
        (BigintArray, ids),
        (BigintArray, [0] * size if added else ids),
        (IntegerArray, [int(batch[0].type)] * size),
        (BigintArray, [_MOMENT] * size),
        (TextArray, [text(AUTHOR.actor.encode())] * size),
        (TextArray, [text(AUTHOR.user_agent.encode())] * size),
        (BigintArray, [0] * size),
        (BigintArray, [0] * size),
        (BigintArray, revisions),
        (ByteaArray, [b"h" * 32] * size),
        (TextArray, [text(proposal.object.body) for proposal in batch]),
    ]
    if added:
        return (_INSERT_OBJECTS + _INSERT_EVENTS).encode(), objects + events
    return (_UPDATE_OBJECTS + _INSERT_EVENTS).encode(), objects[:1] + objects[4:] + events


class Pgbench:
    """The limit of single appends: `pgbench` calls the append function, prepared, over one connection."""

    _SCRIPT = (
        "SELECT head, verdicts, culprits, actuals, revisions, previouses, hashes FROM log_append("
        "(SELECT revision FROM log_head), ARRAY[:append_id]::bigint[], '{{1}}', NULL, NULL, NULL, NULL, '{{{moment}}}',"
        " '{{{actor}}}', '{{{user_agent}}}', '{{pods}}', '{{bench}}', '{{single}}', '{{1}}', '{{1}}', '{{2}}',"
        " '{{{uid}}}', '{{-1}}', ARRAY['\\x{digest}'::bytea], ARRAY['{body}'], NULL, NULL);\n"
    )

    def __init__(self, url: str) -> None:
        """Prepare to append to the database at `url`, which must contain the pod `single`."""
        self._url = url.replace("+psycopg", "")
        obj = pod("single", 1)
        self._script = "\\set append_id random(1, 9000000000000000000)\n" + self._SCRIPT.format(
            moment=_MOMENT,
            actor=AUTHOR.actor.replace(":", "."),  # pgbench would read `:controller` as a variable
            user_agent=AUTHOR.user_agent,
            uid=obj.uid,
            digest="ab" * 32,
            body=obj.body.decode(),
        )

    def call(self, count: int) -> float:
        """Call the append function `count` times; return appends per second, without the time for connecting."""
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write(self._script)
            script.flush()
            command = [
                str(find_program("pgbench")),
                "-n",
                "-M",
                "prepared",
                "-c",
                "1",
                "-t",
                str(count),
                "-f",
                script.name,
            ]
            output = subprocess.run([*command, self._url], check=True, capture_output=True, text=True).stdout
        found = re.search(r"tps = ([\d.]+) \(without initial connection time\)", output)
        assert found, output
        return float(found.group(1))


def append_singly(log: EventLog, count: int) -> float:
    """Append changes one by one, and wait for each of them; return appends per second."""
    work = [Proposal(EventType.MODIFIED, pod("single", i), None) for i in range(count)]
    began = time.perf_counter()
    for proposal in work:
        log.append([proposal], author=AUTHOR)
    return count / (time.perf_counter() - began)


Round = tuple[float, float]
"""Our rate and the rate of the limit, measured one right after the other."""


def group_rounds(log: EventLog, limits: Sequence[Inserter], work: Callable[[int], Work]) -> list[list[Round]]:
    """Append the work of every round through the log and through each limit; return the rounds, by limit."""
    rounds: list[list[Round]] = [[] for _ in limits]
    for number in range(ROUNDS):
        todo = work(number)
        ours = rate(log, todo, on_a_loop)
        for limit, measured in zip(limits, rounds, strict=True):
            measured.append((ours, limit.insert_all(todo)))
    return rounds


def single_rounds(log: EventLog, pgbench: Pgbench) -> list[Round]:
    """Return the measured rounds of single appends."""
    log.append([Proposal(EventType.ADDED, pod("single", 0), 0)], author=AUTHOR)
    append_singly(log, SINGLES)  # this prepares the plans; pgbench prepares its own plans
    return [(append_singly(log, SINGLES), pgbench.call(SINGLES)) for _ in range(ROUNDS)]


def claim(name: str, rounds: Sequence[Round], goal: float) -> Claim:
    """Return the round with the median ratio, because other load affects both rates of a round equally."""
    ours, limit = sorted(rounds, key=lambda pair: pair[0] / pair[1])[len(rounds) // 2]
    return Claim(name, ours, limit, goal, "events/s")


def main(arguments: Sequence[str]) -> int:
    """Print the claims; with --check, exit with code 1 if a claim fails."""
    with PostgresCluster() as cluster:
        for database in ("ours", "plain", "packed"):
            cluster.execute(f"CREATE DATABASE {database}")
            migrate_log(cluster.url(database), clock=SystemClock(), random=random.Random(1))
        log = open_log(cluster.url("ours"), clock=SystemClock(), random=random.Random(1))
        groups: list[int] = []
        log.observe(lambda events: groups.append(len(events)))
        limits = [Inserter(cluster.url("plain"), packed=False), Inserter(cluster.url("packed"), packed=True)]
        gc.freeze()
        creating = group_rounds(log, limits, new_objects)
        updating = group_rounds(log, limits, updates)
        group = statistics.mean(groups)
        for limit in limits:
            limit.close()
        singles = single_rounds(log, Pgbench(cluster.url("ours")))
        threaded = rate(log, new_objects(ROUNDS), on_threads)
        log.close()
    print(f"mean group: {group:.1f} events; 64 threads instead of callers on a loop: {threaded:,.0f} events/s")
    return report(
        [
            claim("PostgreSQL group commit, new objects", creating[0], 0.6),
            claim("PostgreSQL group commit, updates", updating[0], 0.6),
            claim("  the same, limit with packed arrays, new", creating[1], 0.45),
            claim("  the same, limit with packed arrays, updates", updating[1], 0.45),
            claim("PostgreSQL single appends", singles, 0.7),
        ],
        arguments,
    )


if __name__ == "__main__":
    run(main, __doc__)

"""Group commit on SQLite against a bare `sqlite3` executemany: same schema, batch size and durability."""

from __future__ import annotations

import gc
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.report import Claim, report
from ctrlmgr.api.object import Object
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Author, EventLog, EventType, Proposal, migrate_log, open_log

CALLERS = 64
PER_CALLER = 600
_AUTHOR = Author("bench")


def pods(caller: int, count: int) -> list[Object]:
    """Return objects of 1 KB."""
    return [
        Object.from_dict(
            {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {"name": f"pod-{caller}-{i}", "namespace": "bench", "uid": f"{caller:08x}-{i:08x}"},
                "data": "x" * 870,
            }
        )
        for i in range(count)
    ]


def callers_on_a_loop(log: EventLog, work: Sequence[Sequence[Object]]) -> None:
    """Run one closed loop per list of `work`, all on this thread, as the server's handlers run on its event loop."""
    ended: deque[int] = deque()
    some_ended = threading.Semaphore(0)

    def append(caller: int, obj: Object) -> None:
        pending = log.submit([Proposal(EventType.ADDED, obj, 0)], author=_AUTHOR)
        pending.add_done_callback(lambda done: (done.result(), ended.append(caller), some_ended.release()))

    rest = [iter(objects) for objects in work]
    for caller, objects in enumerate(rest):
        append(caller, next(objects))
    running = len(rest)
    while running:
        some_ended.acquire()
        while ended:
            caller = ended.popleft()
            obj = next(rest[caller], None)
            if obj is None:
                running -= 1
            else:
                append(caller, obj)


def callers_on_threads(log: EventLog, work: Sequence[Sequence[Object]]) -> None:
    """Run one closed loop per list of `work`, each on a thread of its own."""

    def append(objects: Sequence[Object]) -> None:
        for obj in objects:
            log.append([Proposal(EventType.ADDED, obj, 0)], author=_AUTHOR)

    callers = [threading.Thread(target=append, args=(objects,)) for objects in work]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()


Run = Callable[[EventLog, Sequence[Sequence[Object]]], None]


def group_commit(path: Path, work: Sequence[Sequence[Object]], run: Run) -> tuple[float, float]:
    """Append everything; return events a second and the mean size of a group."""
    log = open_log(f"sqlite:///{path}", clock=SystemClock(), random=random.Random(1), migrate=True)
    groups: list[int] = []
    log.observe(lambda events: groups.append(len(events)))
    began = time.perf_counter()
    run(log, work)
    seconds = time.perf_counter() - began
    log.close()
    return sum(groups) / seconds, sum(groups) / len(groups)


def bare(folder: Path, work: Sequence[Sequence[Object]], batch: int) -> float:
    """Insert the same rows with executemany, `batch` a transaction; return events a second."""
    url = f"sqlite:///{folder}/bare.db"
    migrate_log(url, clock=SystemClock(), random=random.Random(1))
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536", "wal_autocheckpoint = 10000"):
        connection.execute(f"PRAGMA {pragma}")
    flat = [obj for turn in zip(*work, strict=True) for obj in turn]  # in the order in which callers take turns
    events = [
        (i + 1, i + 1, 0, 1, 1_700_000_000_000_000, "bench", "", 0, 0, i + 1, b"h" * 32, obj.body.decode())
        for i, obj in enumerate(flat)
    ]
    objects = [("pods", "bench", obj.name, i + 1, i + 1, False, obj.uid, i + 1) for i, obj in enumerate(flat)]
    began = time.perf_counter()
    for at in range(0, len(flat), batch):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO object (resource, namespace, name, id, head_revision, deleted, uid, create_revision)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            objects[at : at + batch],
        )
        connection.executemany(
            "INSERT INTO event (revision, object_id, previous, type, recorded_at, actor, user_agent, term,"
            " reconcile_id, append_id, hash, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            events[at : at + batch],
        )
        connection.execute("COMMIT")
    seconds = time.perf_counter() - began
    connection.close()
    return len(flat) / seconds


def main() -> int:
    """Print the claim; with --check exit 1 when it is missed."""
    work = [pods(caller, PER_CALLER) for caller in range(CALLERS)]
    gc.freeze()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, group = group_commit(folder / "loop.db", work, callers_on_a_loop)
        threaded, _ = group_commit(folder / "threads.db", work, callers_on_threads)
        limit = bare(folder, work, CALLERS)
    print(f"mean group: {group:.1f} events")
    return report(
        [
            Claim("SQLite group commit, 64 callers on a loop", ours, limit, 0.6, "events/s"),
            Claim("SQLite group commit, 64 threads", threaded, limit, 0.2, "events/s"),
        ],
        sys.argv[1:],
    )


if __name__ == "__main__":
    sys.exit(main())

"""Measures group commit on SQLite, compared with a bare `sqlite3` executemany of the same schema and batch size."""

from __future__ import annotations

import gc
import random
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.report import Claim, report, run
from bench.support.callers import AUTHOR, Run, Work, on_a_loop, on_threads, rate
from ctrlmgr import interpreter
from ctrlmgr.api.object import Object
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import EventType, Proposal, migrate_log, open_log

CALLERS = 64
PER_CALLER = 400
ROUNDS = 5


def creations(caller: int, count: int) -> list[Proposal]:
    """Return the appends of one caller, which create objects of 1 KB."""
    return [
        Proposal(
            EventType.ADDED,
            Object.from_dict(
                {
                    "kind": "Pod",
                    "apiVersion": "v1",
                    "metadata": {"name": f"pod-{caller}-{i}", "namespace": "bench", "uid": f"{caller:08x}-{i:08x}"},
                    "data": "x" * 870,
                }
            ),
            0,
        )
        for i in range(count)
    ]


def group_commit(path: Path, work: Work, run: Run) -> float:
    """Append all objects; return events per second."""
    log = open_log(f"sqlite:///{path}", clock=SystemClock(), random=random.Random(1), migrate=True)
    measured = rate(log, work, run)
    log.close()
    return measured


def bare(folder: Path, work: Work, batch: int) -> float:
    """Insert the rows that a log would insert with executemany, `batch` per transaction; return events per second."""
    url = f"sqlite:///{folder}/bare.db"
    migrate_log(url, clock=SystemClock(), random=random.Random(1))
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536", "wal_autocheckpoint = 5000"):
        connection.execute(f"PRAGMA {pragma}")
    flat = [
        proposal.object for turn in zip(*work, strict=True) for proposal in turn
    ]  # in the order in which the callers take turns
    events = [
        (
            i + 1,
            i + 1,
            0,
            1,
            1_700_000_000_000_000,
            AUTHOR.actor,
            AUTHOR.user_agent,
            0,
            0,
            i + 1,
            b"h" * 32,
            obj.body.decode(),
        )
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


def main(arguments: Sequence[str]) -> int:
    """Print the claims; with --check, exit with code 1 if a claim fails."""
    interpreter.tune()
    work = [creations(caller, PER_CALLER) for caller in range(CALLERS)]
    gc.freeze()
    looped, threaded, limits = [], [], []
    with tempfile.TemporaryDirectory() as name:
        # our rate and the limit are measured in alternating turns, because the speed of a disk varies
        for turn in range(ROUNDS):
            folder = Path(name) / str(turn)
            folder.mkdir()
            limits.append(bare(folder, work, CALLERS))
            looped.append(group_commit(folder / "loop.db", work, on_a_loop))
            threaded.append(group_commit(folder / "threads.db", work, on_threads))
    limit = median(limits)
    return report(
        [
            Claim("appends to SQLite by 64 callers on an event loop", median(looped), limit, 0.6, "events/s"),
            Claim("appends to SQLite by 64 threads", median(threaded), limit, 0.2, "events/s"),
        ],
        arguments,
    )


if __name__ == "__main__":
    run(main, __doc__)

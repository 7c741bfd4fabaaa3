"""Measures how many events several processes together append to one log on PostgreSQL, by the size of the objects.

No two processes append changes of the same object. Each process has 64 callers, as `bench.postgres` has. The content of
each object is random. All appends of all processes form one order, so an append locks the row of `log_head` until its
commit. The benchmark prints three things for each size and number of processes:

- The rate of all processes together, compared with the rate of one process in the same run.
- The CPU time per event, of the writing process and of PostgreSQL. If the machine had more cores, the CPU time of the
  writing processes would be divided by their number; the work under the lock would not.
- The rate without waiting for the disk (`synchronous_commit = off`), which shows the share of the commit.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.report import Claim, report, run
from bench.support.callers import on_a_loop
from ctrlmgr.api.object import Object
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import EventLog, EventType, Proposal, migrate_log, open_log
from ctrlmgr.testing.postgres import PostgresCluster

CALLERS = 64
SIZES = (1_000, 8_000, 64_000)
"""Approximate sizes of the objects in bytes."""
PROCESSES = (1, 2, 4, 8)
SECONDS = 4.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Measured(NamedTuple):
    """The events per second of all processes, and the CPU microseconds per event of the writers and of PostgreSQL."""

    rate: float
    writer: float
    postgres: float


def pod(writer: int, number: int, size: int, randomness: random.Random) -> Object:
    """Return a pod with random content of `size` bytes; each writer has its own pods."""
    name = f"w{writer}-{number}"
    metadata = {"name": name, "namespace": "bench", "uid": f"{writer:08}-0000-4000-8000-{number:012}"}
    return Object.from_dict(
        {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "data": randomness.randbytes(size // 2).hex()}
    )


def append_for(log: EventLog, writer: int, size: int, seconds: float) -> int:
    """Append changes of 64 pods until the time is over; return the number of events."""
    randomness = random.Random(writer)
    ends_at, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < ends_at:
        pods = [pod(writer, number, size, randomness) for number in range(CALLERS)]
        on_a_loop(log, [[Proposal(EventType.MODIFIED if rounds else EventType.ADDED, each, None)] for each in pods])
        rounds += 1
    return rounds * CALLERS


def child(url: str, writer: int, size: int) -> None:
    """Wait for a line on standard input, append for the fixed time, and print the events and the CPU seconds.

    The connections to PostgreSQL stay open until standard input ends, so that the caller can read their CPU time.
    """
    log = open_log(url, clock=SystemClock(), random=random.Random(writer))
    log.head()
    print("ready", flush=True)
    sys.stdin.readline()
    cpu = time.process_time()
    events = append_for(log, writer, size, SECONDS)
    print(json.dumps([events, time.process_time() - cpu]), flush=True)
    sys.stdin.read()
    log.close()


def measure(cluster: PostgresCluster, url: str, processes: int, size: int) -> Measured:
    """Append with a number of processes that begin at the same time."""
    command = [sys.executable, "-m", "bench.writers", "--child", url]
    pipe = subprocess.PIPE
    children = [
        subprocess.Popen([*command, str(i), str(size)], stdin=pipe, stdout=pipe, text=True) for i in range(processes)
    ]
    for each in children:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    before, began = postgres_cpu(cluster), time.monotonic()
    for each in children:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    results = [json.loads(each.stdout.readline()) for each in children if each.stdout is not None]
    duration, postgres = time.monotonic() - began, postgres_cpu(cluster) - before
    for each in children:
        each.communicate()
    events = sum(count for count, _ in results)
    return Measured(events / duration, sum(cpu for _, cpu in results) / events * 1e6, postgres / events * 1e6)


def postgres_cpu(cluster: PostgresCluster) -> float:
    """Return the CPU seconds of all running processes of the server."""
    return sum(map(_cpu_seconds, cluster.processes()))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def main(arguments: Sequence[str]) -> int:
    """Print the measurements and the claims; with --check, exit with code 1 if a claim fails."""
    if arguments[:1] == ["--child"]:
        child(arguments[1], int(arguments[2]), int(arguments[3]))
        return 0
    claims = []
    with PostgresCluster() as cluster:
        for size in SIZES:
            claims += measure_size(cluster, size)
    return report(claims, arguments)


def new_database(cluster: PostgresCluster, name: str) -> str:
    """Create a database with an empty log, and return its URL."""
    cluster.execute(f"CREATE DATABASE {name}")
    migrate_log(cluster.url(name), clock=SystemClock(), random=random.Random(1))
    return cluster.url(name)


def measure_size(cluster: PostgresCluster, size: int) -> list[Claim]:
    """Measure all numbers of processes with objects of one size."""
    measured = {n: measure(cluster, new_database(cluster, f"by_{n}_of_{size}"), n, size) for n in PROCESSES}
    name = f"unsynchronized_{size}"
    url = new_database(cluster, name)
    cluster.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    without = measure(cluster, url, 1, size)
    for processes, each in (*measured.items(), ("1, without waiting for the disk", without)):
        print(
            f"{size:>6} bytes, processes: {processes}: {each.rate:,.0f} events/s, CPU per event: "
            f"writer {each.writer:.0f} us, PostgreSQL {each.postgres:.0f} us"
        )
    one = measured[1].rate
    return [
        Claim(f"{processes} processes, {size} bytes, beside 1 process", measured[processes].rate, one, 0.9, "events/s")
        for processes in PROCESSES[1:]
    ]


if __name__ == "__main__":
    run(main, __doc__)

"""Measures the cost of admission and audit in instructions that the server executes for a create, instead of time.

The server runs under valgrind's callgrind, fifty times slower, and the benchmark counts the instructions between two
points in time. Other load on the machine changes the number of instructions by a few percent, while durations vary by
as much as the measured cost. A server checks all Services every three minutes. Under callgrind, the server checks all
Services once in a few hundred creates, so the benchmark uses the minimum of several counts. The number of instructions
does not contain the time for which the processor waits for memory. SHA-256, for which processors have special
instructions, counts as several thousand instructions under callgrind. `bench.admission` and `bench.audit` measure time.
This benchmark needs valgrind.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from bench.admission import ALL_OFF, KINDS, NO_CONTROLLERS, prepare
from bench.audit import SERVICES, USERS, options
from bench.report import Claim, report, run
from bench.support.https_load import Load, measure
from bench.support.served import Served, serving

CLIENTS = 16
TURNS = 5
SHORT, LONG = 1.0, 15.0
"""Seconds for which creates are sent while instructions are counted."""
AFTER = 4.0
"""Seconds after which the background work of requests is finished."""
PATIENCE = 30.0


class Count(NamedTuple):
    """The number of creates in a period, and the number of instructions that the server executed in this period."""

    creates: int
    instructions: int


def _of_one(counts: Sequence[tuple[Count, Count]], idle: int) -> float:
    """Return the instructions of one create; `idle` is the number of instructions that only a long count contains."""
    few, short = min((short for short, _ in counts), key=attrgetter("instructions"))
    return min((long - short - idle) / (many - few) for _, (many, long) in counts)


class Counting:
    """A server under callgrind."""

    def __init__(self, served: Served, folder: Path) -> None:
        """Count the instructions of `served`; callgrind writes the counts into `folder`."""
        self._served = served
        self._folder = folder

    def of_creates(self, path: str, body: object, askers: Mapping[str, Served]) -> Mapping[str, float]:
        """Return the instructions of a create for each of the users, measured in alternating turns.

        A short count also contains the cost of connecting; an idle count contains only the server's own work.
        Occasional work of the server can only increase a count, so the minimum of each kind of count is used.
        """
        requests = {name: (served, served.request("POST", path, json.dumps(body))) for name, served in askers.items()}
        for served, request in requests.values():
            self._create(served, request, LONG)  # after the server has done its work for the first requests
        time.sleep(LONG - SHORT)
        idle = self._since_last()
        counts: dict[str, list[tuple[Count, Count]]] = {name: [] for name in askers}
        for number in range(TURNS):
            for name in counts if number % 2 else reversed(counts):
                short, long = (self._create(*requests[name], seconds) for seconds in (SHORT, LONG))
                counts[name].append((short, long))
        return {name: _of_one(each, idle) for name, each in counts.items()}

    def _create(self, served: Served, request: str, seconds: float) -> Count:
        load = Load(served.host, served.port, served.authority, CLIENTS, seconds, [request], 0.0, expect=201)
        answers = measure(load).all_answers
        time.sleep(AFTER)
        return Count(answers, self._since_last())

    def _since_last(self) -> int:
        """Return the number of instructions that the server executed since the last call of this method."""
        before = set(self._folder.glob("counts*"))
        command = ["callgrind_control", "--dump", str(self._served.process)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        ends_at = time.monotonic() + PATIENCE
        while time.monotonic() < ends_at:
            for each in set(self._folder.glob("counts*")) - before:
                totals = [line for line in each.read_text().splitlines() if line.startswith("totals:")]
                if totals:
                    return int(totals[0].split()[1])
            time.sleep(0.1)
        raise TimeoutError("callgrind has written no counts")


def counted(folder: Path) -> Sequence[str]:
    """Return the command that runs a server under callgrind and counts its instructions."""
    return ("valgrind", "--tool=callgrind", "--fair-sched=yes", f"--callgrind-out-file={folder}/counts")


def of_admission() -> Iterator[Claim]:
    """Compare creates on a server with the default plugins with creates on a server without plugins."""
    counts: dict[tuple[str, Sequence[str]], float] = {}
    for off in ((), ALL_OFF):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with serving(folder, *NO_CONTROLLERS, *off, under=counted(folder)) as served:
                prepare(served, "plain")
                counting = Counting(served, folder)
                for kind, (plural, body) in KINDS.items():
                    path = f"/api/v1/namespaces/plain/{plural}"
                    counts[kind, off] = counting.of_creates(path, body, {"anyone": served})["anyone"]
    for kind in KINDS:
        ours, none = (1e9 / counts[kind, off] for off in ((), ALL_OFF))
        yield Claim(
            f"creates of {kind} with the default plugins, compared with no plugins", ours, none, 0.85, "a billion"
        )


def of_audit() -> Claim:
    """Compare creates of Services that the audit policy logs with creates that it excludes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder, *options(folder), under=counted(folder)) as served:
            askers = {user: served._replace(token=user) for user in USERS}
            counts = Counting(served, folder).of_creates(SERVICES, KINDS["Services"][1], askers)
    written, let_off = (counts[user] for user in USERS)
    return Claim("create of a Service, audited at the level Metadata", written, let_off, 1.05, "each", at_most=True)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    return report([*of_admission(), of_audit()], arguments)


if __name__ == "__main__":
    run(main, __doc__)

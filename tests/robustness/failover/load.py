"""Measures many failovers: `python -m tests.robustness.failover.load --rounds 30 --database postgresql`.

In each round, a fault of the leader occurs at a random time while Services are created: the leader is killed, stopped
gracefully, or frozen for longer than its lease. The script prints its seed, the time until another process held the
Lease, and the time until the controllers had processed the new Services. Several groups of servers can run at the same
time. The exit code is 1 if the log contains a write of an old term after a newer term began.
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.failover.leaders import Candidate, Group
from tests.robustness.faults import new_seed
from tests.robustness.faults.stage import database_of, sqlite_url
from tests.robustness.verdicts import say

_LONGEST_PAUSE = 3.0
"""The maximum number of seconds until a fault; it is longer than the time between two renewals."""


class Failover(NamedTuple):
    """The type of a leader's fault, and the seconds until the takeover and until the controllers acted."""

    kind: str
    taken: float
    acted: float


class Plan(NamedTuple):
    """The options of each group."""

    rounds: int
    kinds: Sequence[str]
    servers: int


class FailoverResult(NamedTuple):
    """The results of all rounds, and the violations in the log."""

    found: list[Failover]
    violations: list[str]


def _kill(group: Group, leader: Candidate) -> None:
    leader.signal(signal.SIGKILL)


def _stop(group: Group, leader: Candidate) -> None:
    leader.signal(signal.SIGTERM)


KINDS: dict[str, Callable[[Group, Candidate], None]] = {"killed": _kill, "stopped": _stop, "frozen": Group.freeze}


def main() -> int:
    """Run the test with the options of the command line."""
    arguments = _arguments()
    seed = new_seed() if arguments.seed is None else arguments.seed
    say(f"seed {seed}")
    with (
        _databases(arguments.database, arguments.groups) as places,
        ThreadPoolExecutor(arguments.groups) as threads,
    ):
        plan = Plan(arguments.rounds, arguments.kinds, arguments.servers)
        played = [threads.submit(_play, plan, f"{seed} {number}", *place) for number, place in enumerate(places)]
        found = [failover for each in played for failover in each.result().found]
        violations = [violation for each in played for violation in each.result().violations]
    _report(found)
    for violation in violations:
        say(violation)
    return 1 if violations else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="of each group")
    parser.add_argument("--groups", type=int, default=1, help="groups of servers, each on a database of its own")
    parser.add_argument("--seed", type=int, help="for repeating a run, as far as it goes")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS), default=tuple(KINDS))
    return parser.parse_args()


@contextmanager
def _databases(kind: str, count: int) -> Iterator[list[tuple[Path, str]]]:
    """Yield a folder and the URL of a database, once for each group of servers."""
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-failover-") as name, ExitStack() as stack:
        folders = [Path(name) / f"group-{number}" for number in range(count)]
        for folder in folders:
            folder.mkdir()
        if kind == "sqlite":
            yield [(folder, sqlite_url(folder)) for folder in folders]
            return
        cluster = stack.enter_context(PostgresCluster())
        yield [(folder, stack.enter_context(database_of(cluster))) for folder in folders]


def _play(plan: Plan, seed: str, folder: Path, database: str) -> FailoverResult:
    """Run all rounds of one group of servers."""
    dice = random.Random(seed)
    found: list[Failover] = []
    with Group(folder, database, size=plan.servers) as group:
        for number in range(plan.rounds):
            kind = plan.kinds[number % len(plan.kinds)]
            found.append(_round(group, kind, dice))
            taken, acted = found[-1].taken, found[-1].acted
            say(f"{folder.name}, {number + 1}: {kind}, taken after {taken:.2f} s, acted after {acted:.2f} s")
        return FailoverResult(found, group.violations())


def _round(group: Group, kind: str, dice: random.Random) -> Failover:
    leader = group.leader()
    other = group.other(leader)
    before = group.lease().term
    time.sleep(dice.uniform(0.0, _LONGEST_PAUSE))
    KINDS[kind](group, leader)
    began = time.monotonic()
    service = group.service(other)
    group.await_term(before)
    taken = time.monotonic() - began
    group.await_endpoints(service)
    acted = time.monotonic() - began
    if kind == "frozen":
        leader.signal(signal.SIGCONT)
    else:
        leader.await_end()
        leader.start()
    return Failover(kind, taken, acted)


def _report(found: list[Failover]) -> None:
    say("| leader | failovers | lease taken, median | worst | acted, median | worst |")
    say("|---|---|---|---|---|---|")
    for kind in dict.fromkeys(each.kind for each in found):
        taken = [each.taken for each in found if each.kind == kind]
        acted = [each.acted for each in found if each.kind == kind]
        times = (statistics.median(taken), max(taken), statistics.median(acted), max(acted))
        say(f"| {kind} | {len(taken)} | " + " | ".join(f"{seconds:.2f} s" for seconds in times) + " |")


if __name__ == "__main__":
    sys.exit(main())

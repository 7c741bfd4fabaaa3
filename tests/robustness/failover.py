"""Failovers, again and again: `python -m tests.robustness.failover --rounds 30 --seed 1 --database postgres`.

Each round something befalls the leader at a random moment, while services are created: it is killed, stopped in order,
or frozen for longer than its lease. Prints its seed and how long it took until another one held the lease, and until
the controllers had acted on what was created meanwhile. Ends with 1 if the log has anything of an old term after a
newer one began.
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.faults import new_seed
from tests.robustness.leaders import Candidate, Group
from tests.robustness.places import on_postgres, on_sqlite

_LONGEST_PAUSE = 3.0
"""Seconds until something happens, at most: longer than the time between renewals."""


class Failover(NamedTuple):
    """What befell a leader, and seconds until the lease was taken and until the controllers acted."""

    kind: str
    taken: float
    acted: float


def _kill(group: Group, leader: Candidate) -> None:
    leader.signal(signal.SIGKILL)


def _stop(group: Group, leader: Candidate) -> None:
    leader.signal(signal.SIGTERM)


KINDS: dict[str, Callable[[Group, Candidate], None]] = {"killed": _kill, "stopped": _stop, "frozen": Group.freeze}


def main() -> int:
    """Do what the command line says."""
    arguments = _arguments()
    seed = new_seed() if arguments.seed is None else arguments.seed
    _say(f"seed {seed}")
    dice = random.Random(seed)
    found: list[Failover] = []
    with _database(arguments.database) as (folder, database), Group(folder, database, size=arguments.servers) as group:
        for number in range(arguments.rounds):
            kind = arguments.kinds[number % len(arguments.kinds)]
            found.append(_round(group, kind, dice))
            _say(f"{number + 1}: {kind}, taken after {found[-1].taken:.2f} s, acted after {found[-1].acted:.2f} s")
        violations = group.violations()
    _report(found)
    for violation in violations:
        _say(violation)
    return 1 if violations else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, help="for repeating a run, as far as it goes")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS), default=tuple(KINDS))
    return parser.parse_args()


@contextmanager
def _database(kind: str) -> Iterator[tuple[Path, str]]:
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-failover-") as name:
        folder = Path(name)
        if kind == "sqlite":
            yield folder, on_sqlite(folder).database
            return
        with PostgresCluster() as cluster, on_postgres(folder, cluster) as setting:
            yield folder, setting.database


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
    _say("| leader | failovers | lease taken, median | worst | acted, median | worst |")
    _say("|---|---|---|---|---|---|")
    for kind in dict.fromkeys(each.kind for each in found):
        taken = [each.taken for each in found if each.kind == kind]
        acted = [each.acted for each in found if each.kind == kind]
        times = (statistics.median(taken), max(taken), statistics.median(acted), max(acted))
        _say(f"| {kind} | {len(taken)} | " + " | ".join(f"{seconds:.2f} s" for seconds in times) + " |")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""Runs a robustness test of any length: `python -m tests.robustness.histories.soak --seconds 600 --seed N`.

The script prints its seed, statistics and violations; the exit code is 1 if there are violations. `--save FILE` writes
the history to a file, and `--judge FILE` checks the history in a file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.checks import check
from tests.robustness.checks.coverage import acknowledged_rate, gaps
from tests.robustness.faults import new_seed
from tests.robustness.histories.history import History
from tests.robustness.histories.run import Plan, RunSetup, run
from tests.robustness.places import on_postgres, on_sqlite
from tests.robustness.verdicts import say, verdict

RATE = 50.0
"""The minimum rate of a meaningful run, in acknowledged writes a second (etcd's limit for slow clusters)."""


def main() -> int:
    """Run the test with the options of the command line."""
    arguments = _arguments()
    if arguments.judge:
        return _judge(History.load(arguments.judge))
    seed = new_seed() if arguments.seed is None else arguments.seed
    say(f"seed {seed}")
    with _setting(arguments) as setting:
        history = run(Plan(seed, faulty=arguments.seconds, between_faults=3.0), setting)
    if arguments.save:
        history.save(arguments.save)
    return _judge(history)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long there are faults")
    parser.add_argument("--seed", type=int, help="for repeating a run, as far as it goes")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--servers", type=int, default=1, help="serve processes, several only on postgres")
    parser.add_argument("--window", type=int, default=10_000, help="events that a server keeps in memory")
    parser.add_argument("--save", type=Path, metavar="FILE")
    parser.add_argument("--judge", type=Path, metavar="FILE")
    return parser.parse_args()


@contextmanager
def _setting(arguments: argparse.Namespace) -> Iterator[RunSetup]:
    settings = f"[watch_cache]\ncapacity = {arguments.window}\n"
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-soak-") as name:
        folder = Path(name)
        if arguments.database == "sqlite":
            yield on_sqlite(folder, settings=settings)
            return
        with (
            PostgresCluster() as cluster,
            on_postgres(folder, cluster, servers=arguments.servers, settings=settings) as setting,
        ):
            yield setting


def _judge(history: History) -> int:
    say(f"{len(history.log)} events, {acknowledged_rate(history):.0f} writes a second before the first fault")
    say(f"writes: {_counts(f'{write.verb} {write.code}' for write in history.writes)}")
    say(f"reads: {_counts(page.code for read in history.reads for page in read.pages)}")
    say(f"watches: {_counts(watch.ended for watch in history.watches)}")
    say(f"told: {_counts(each.type for watch in history.watches for each in watch.deliveries)}")
    say(f"faults: {_counts(fault.kind for fault in history.faults)}, {len(history.compactions)} compactions")
    wrong = [*check(history), *(f"coverage: {gap}" for gap in gaps(history, rate=RATE))]
    return verdict(wrong)


def _counts(things: Iterator[object]) -> str:
    return ", ".join(f"{count} {thing}" for thing, count in sorted(Counter(map(str, things)).items()))


if __name__ == "__main__":
    sys.exit(main())

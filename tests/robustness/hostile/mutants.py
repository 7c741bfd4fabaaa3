"""Tests that the checks detect known faults: `python -m tests.robustness.hostile.mutants [NAME...]`.

Each faulty server of `mutant_server` runs under load until a check reports a violation, in at most three runs. For each
fault, the script prints the check that reported the violation. The exit code is 1 if no check detects one of the
faults.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.checks import check
from tests.robustness.faults import new_seed
from tests.robustness.histories.run import Plan, RunSetup, run
from tests.robustness.hostile.mutant_server import MUTANTS, SOUND
from tests.robustness.places import on_postgres, on_sqlite
from tests.robustness.serving import ConfiguredServer
from tests.robustness.verdicts import say

TRIES = 3
_WINDOW = "[watch_cache]\ncapacity = 50\n"
"""The capacity of the watch cache; it is small, so that the server reads old events from the log."""

_OF_TWO = ("reads_do_not_ask_the_log",)
"""Names of the faults that only have effects with two servers."""


def main() -> int:
    """Run the named faulty servers, or all faulty servers."""
    ConfiguredServer.module = "tests.robustness.hostile.mutant_server"
    if _is_killed(SOUND):
        say("not even the server as it is passes: the checks say nothing")
        return 1
    survivors = [name for name in sys.argv[1:] or MUTANTS if not _is_killed(name)]
    say(f"{len(survivors)} survived: {', '.join(survivors)}" if survivors else "none survived")
    return 1 if survivors else 0


def _is_killed(name: str) -> bool:
    os.environ["MUTANT"] = name
    for _ in range(TRIES):
        seed = new_seed()
        complaints = _complaints(name, seed)
        if complaints:
            say(f"{name}: {len(complaints)} complaints (seed {seed}), such as\n    {complaints[0][:300]}")
            return True
    say(f"{name}: survived")
    return False


def _complaints(name: str, seed: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-mutant-") as folder, _setting(name, Path(folder)) as setting:
        try:
            return check(run(Plan(seed, quiet=4.0, informers=6), setting))
        except Exception as error:  # the server has crashed, which is also a detection
            return [f"the run failed: {error!r}"]


@contextmanager
def _setting(name: str, folder: Path) -> Iterator[RunSetup]:
    if name not in _OF_TWO:
        yield on_sqlite(folder, settings=_WINDOW)
        return
    with PostgresCluster() as cluster, on_postgres(folder, cluster, servers=2) as setting:
        yield setting


if __name__ == "__main__":
    sys.exit(main())

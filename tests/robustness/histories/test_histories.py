"""Tests of real servers under load and faults: the responses to all clients are checked against the log; `soak` is the
longer form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.checks import check
from tests.robustness.checks.coverage import gaps
from tests.robustness.disturbing import ALL
from tests.robustness.faults import new_seed
from tests.robustness.histories.run import Plan, RunSetup, run
from tests.robustness.places import on_postgres, on_sqlite

RATE = 10.0
"""A rate of acknowledged writes a second that even a very busy machine reaches; a run with a lower
rate proves nothing.
"""

SMALL_WINDOW = "[watch_cache]\ncapacity = 100\n"
"""The capacity of the watch cache; it is small, so that many watches request events that are no longer in memory."""

TRIES = 3
"""The maximum number of runs until all features were tested; no run may find a violation."""

FORGOTTEN = "there was no watch of the forgotten"
"""With two servers, requests for compacted revisions are rare, so only the runs with one server test such requests."""


def assert_sound(
    places: Callable[[Path], AbstractContextManager[RunSetup]],
    folder: Path,
    faults: Collection[str] = ALL,
    spared: Collection[str] = (),
) -> None:
    for number in range(TRIES):
        plan = Plan(new_seed(), quiet=2.0, faults=faults)
        print(f"seed {plan.seed}: python -m tests.robustness.histories.soak --seed {plan.seed}")  # noqa: T201  # to be run again
        place = folder / f"run-{number}"
        place.mkdir()
        with places(place) as setting:
            history = run(plan, setting)
        assert check(history) == []
        untried = [gap for gap in gaps(history, rate=RATE) if gap not in spared]
        if not untried:
            return
    assert untried == []


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_sqlite_histories_are_correct(tmp_path: Path) -> None:
    assert_sound(lambda folder: nullcontext(on_sqlite(folder, settings=SMALL_WINDOW)), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.postgres
def test_postgresql_histories_are_correct(tmp_path: Path, cluster: PostgresCluster) -> None:
    assert_sound(lambda folder: on_postgres(folder, cluster, settings=SMALL_WINDOW), tmp_path, ("stop", "database"))


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.postgres
def test_histories_of_two_servers_on_one_postgresql_are_correct(tmp_path: Path, cluster: PostgresCluster) -> None:
    assert_sound(
        lambda folder: on_postgres(folder, cluster, servers=2), tmp_path, ("kill", "pause", "database"), [FORGOTTEN]
    )

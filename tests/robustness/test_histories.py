"""Real servers under load and faults: what all their clients saw, judged by the event log; `soak` is more of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.checks import check
from tests.robustness.checks.coverage import gaps
from tests.robustness.faults import new_seed
from tests.robustness.places import on_postgres, on_sqlite
from tests.robustness.run import Plan, Setting, run

RATE = 10.0
"""Acknowledged writes a second that even a very busy machine manages; with fewer a run proves nothing."""

SMALL_WINDOW = "[watch_cache]\ncapacity = 100\n"
"""So that a good part of what watchers ask for is no longer in memory."""


def judge(plan: Plan, setting: Setting) -> None:
    print(f"seed {plan.seed}: python -m tests.robustness.soak --seed {plan.seed}")  # noqa: T201  # to be run again
    history = run(plan, setting)
    assert check(history) == []
    assert list(gaps(history, rate=RATE)) == []


@pytest.mark.slow
def test_sqlite(tmp_path: Path) -> None:
    judge(Plan(new_seed(), quiet=2.0), on_sqlite(tmp_path, settings=SMALL_WINDOW))


@pytest.mark.slow
@pytest.mark.postgres
def test_postgresql(tmp_path: Path, cluster: PostgresCluster) -> None:
    with on_postgres(tmp_path, cluster, settings=SMALL_WINDOW) as setting:
        judge(Plan(new_seed(), quiet=2.0, faults=("stop", "database")), setting)


@pytest.mark.slow
@pytest.mark.postgres
def test_two_servers_on_one_postgresql(tmp_path: Path, cluster: PostgresCluster) -> None:
    with on_postgres(tmp_path, cluster, servers=2) as setting:
        judge(Plan(new_seed(), quiet=2.0, faults=("kill", "pause", "database")), setting)

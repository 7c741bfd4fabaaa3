"""Tests of each fault once, with real processes; `python -m tests.robustness.faults` runs hundreds of rounds."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.faults import new_seed
from tests.robustness.faults.injections import INJECTIONS, RoundResources
from tests.robustness.faults.machine import FaultUnsupported
from tests.robustness.faults.round import Row

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

IN_A_ROW = ("kill", "restart-db", "cut")
"""The faults that can be tested with the same set-up."""


def assert_survives(*names: str, cluster: PostgresCluster | None = None) -> None:
    """Run rounds; skip the test with a reason if this machine cannot create a fault."""
    seed = new_seed()
    database = "postgresql" if cluster else "sqlite"
    print(f"seed {seed}: python -m tests.robustness.faults --database {database} --faults {','.join(names)}")  # noqa: T201  # for more of it
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-faults-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # a database server that does not run as root has its files there
        row = Row([INJECTIONS[each](RoundResources(folder, dice, cluster, is_short=True)) for each in names], seed)
        try:
            wrong = row.play()
        except FaultUnsupported as missing:
            pytest.skip(f"this machine cannot do it: {missing}")
    assert wrong == []
    assert [outcome.fault for outcome in row.outcomes] == list(names)
    assert all(outcome.acknowledged for outcome in row.outcomes), "nobody wrote anything"


@pytest.mark.parametrize("names", [("clock", "stop"), ("disk-full",)])
def test_faults_on_sqlite(names: tuple[str, ...]) -> None:
    assert_survives(*names)


@pytest.mark.postgres
def test_faults_of_processes_connections_and_the_server_of_postgresql() -> None:
    with PostgresCluster() as own:  # other faults use the shared server
        assert_survives(*IN_A_ROW, cluster=own)


@pytest.mark.postgres
@pytest.mark.parametrize("name", ["promote", "disk-full", "partition"])
def test_faults_around_postgresql(name: str, cluster: PostgresCluster) -> None:
    assert_survives(name, cluster=cluster)

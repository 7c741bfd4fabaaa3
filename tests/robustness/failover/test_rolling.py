"""Tests of servers that are restarted in turn: no request fails, no write is lost, no watcher misses an event."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.robustness.failover.rolling import Plan, roll, stage_on


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_a_rolling_restart_of_servers_is_invisible_to_clients(database: str) -> None:
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-rolling-") as name, stage_on(database, Path(name)) as stage:
        tally, wrong = roll(stage, Plan(restarts=1, clients=4))
    assert wrong == []
    assert tally.created, "nobody wrote anything"
    assert tally.reconnected >= 4, "nobody had to go to the other server"

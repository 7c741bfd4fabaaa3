"""Tests of a database failover while many clients write: acknowledged writes are in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.robustness.checks import check
from tests.robustness.failover.replicated import ReplicatedPostgres
from tests.robustness.faults import new_seed
from tests.robustness.histories.run import Plan, RunSetup, run

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(600)]


def test_clients_of_two_servers_lose_and_repeat_nothing(tmp_path: Path) -> None:
    plan = Plan(new_seed(), quiet=1.0, faults=("database",), between_faults=3.0)
    print(f"seed {plan.seed}")  # noqa: T201  # shown with a failure
    with ReplicatedPostgres() as both:

        def fail_over() -> None:
            both.stop_primary("kill")
            both.promote()

        history = run(plan, RunSetup(tmp_path, both.url, 2, fail_over))
    assert check(history) == []
    [fault] = history.faults
    acknowledged = [write for write in history.writes if write.acknowledged]
    assert [write for write in acknowledged if write.returned < fault.began]
    assert [write for write in acknowledged if write.called > fault.ended]

"""A scenario of each kind of workload, with a server that dies; all of them: `tests.scenario_takeover`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import PARTS
from tests.scenario_takeover import is_as_recorded, play, scenarios_folder

WORKLOADS = PARTS["workloads"]
SCENARIOS = ["^(deployments-000|statefulsets-015|jobs-005)$"] if (scenarios_folder() / WORKLOADS.data).exists() else []
"""On machines that have them beside the repository."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("only", SCENARIOS)
def test_what_one_process_began_others_finish(tmp_path: Path, only: str) -> None:
    actual = tmp_path / "actual.json.gz"
    assert play(WORKLOADS, only, actual, seed=2, chance=0.3) >= 2
    assert is_as_recorded(WORKLOADS, only, actual)

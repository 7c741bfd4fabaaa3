"""A trial learns, perturbs, looks for smaller plans, and groups findings; here without servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.trial import trial_runner
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.perturbation_plan import Perturbation, Plan
from ctrlmgr.trial.run_record import RunRecord
from ctrlmgr.trial.running.operator_run import FinishedRun, RunOptions
from ctrlmgr.trial.scenario import Scenario, Wait
from ctrlmgr.trial.trial_runner import Oracle, Progress, Trial, TrialFailed, TrialOptions, TrialResult
from tests.trial.finished import finished, state

WRITES = tuple(f"create configmaps shop/{name}" for name in "abcd")
BAD = Perturbation("answer-500", WRITES[2])

Perform = Callable[[Plan, Path], FinishedRun]


class Scene:
    """A trial whose runs end as a test says."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.plans: list[Plan] = []
        self.told: list[Progress] = []
        self.perform: Perform = lambda plan, at: finished(*WRITES, plan=plan, folder=at, end=state("web"))
        monkeypatch.setattr(trial_runner, "perform", self._perform)

    def _perform(
        self, run: RunOptions, scenario: Scenario, plan: Plan, folder: Path, *_: Any, **__: Any
    ) -> FinishedRun:
        folder.mkdir(parents=True)
        self.plans.append(plan)
        return self.perform(plan, folder)

    def run(self, *oracles: Oracle, **options: Any) -> TrialResult:
        run = RunOptions("operator", "trial-operator", "", self.folder / "prepared", (), 1, 1, 1)
        scenario = Scenario((Wait(),))
        chosen = TrialOptions(run, scenario, self.folder, options.pop("families", ["answers"]), 1, **options)
        return Trial(chosen, oracles, self.told.append, clock=SystemClock()).run()


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def loses_web(is_bad: Callable[[Plan], bool]) -> Perform:
    return lambda plan, at: finished(*WRITES, plan=plan, folder=at, end=state() if is_bad(plan) else state("web"))


def test_a_trial_without_findings_keeps_one_clean_run(scene: Scene) -> None:
    result = scene.run()
    assert result == TrialResult((), 7, 4, ())
    assert [len(plan.perturbations) for plan in scene.plans] == [0, 0, 4, 4, 4, 4, 4]
    assert [each.name for each in scene.folder.iterdir()] == ["run-001"]
    assert scene.told[-1] == Progress("perturbing", 5, 5)


def test_the_smallest_plan_is_reported(scene: Scene) -> None:
    scene.perform = loses_web(lambda plan: BAD in plan.perturbations)
    result = scene.run()
    (reported,) = result.reported
    assert reported.plan == Plan((BAD,))
    assert reported.finding.object == "ConfigMap shop/web"
    assert reported.others == 2, "the whole plan and its half"
    assert Plan((BAD,)).text() == reported.plan_file.read_text()
    assert {each.name for each in scene.folder.iterdir()} == {"run-001", reported.record.folder.name}


def test_perturbations_that_matter_only_together_stay_together(scene: Scene) -> None:
    scene.perform = loses_web(lambda plan: len(plan.perturbations) == 4 and plan.perturbations[0].kind == "answer-500")
    (reported,) = scene.run().reported
    assert len(reported.plan.perturbations) == 4


def test_one_plan_replaces_all_others(scene: Scene) -> None:
    scene.run(plan=Plan((BAD,)), keeps_all=True)
    assert scene.plans == [Plan(), Plan(), Plan((BAD,))]
    assert len([*scene.folder.iterdir()]) == 3


def test_a_finding_of_a_clean_run_needs_no_perturbation(scene: Scene) -> None:
    def oracle(record: RunRecord) -> list[Finding]:
        return [Finding("endless-writing", "the operator does not stop.")]

    (reported,) = scene.run(oracle).reported
    assert reported.plan == Plan()
    assert reported.others == 5
    assert reported.record.folder.name == "run-001"


def test_a_failed_step_of_a_perturbed_run_is_a_finding(scene: Scene) -> None:
    scene.perform = lambda plan, at: finished(
        *WRITES, plan=plan, folder=at, failed_step="wait: too long" if plan.perturbations else ""
    )
    assert [each.finding.message for each in scene.run(plan=Plan((BAD,))).reported] == [
        "A step of the scenario failed: wait: too long."
    ]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"failed_step": "apply Widget shop/a: not found"}, "the scenario fails without a perturbation: apply Widget"),
        ({"rights": ()}, r"the operator sent no request for a resource; its output is in .*/operator\.log"),
    ],
)
def test_a_trial_needs_clean_runs_that_work(scene: Scene, options: Any, error: str) -> None:
    scene.perform = lambda plan, at: finished(plan=plan, folder=at, **options)
    with pytest.raises(TrialFailed, match=error):
        scene.run()

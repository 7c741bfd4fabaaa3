"""Plans are files that describe the perturbations of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.trial.perturbation_plan import KINDS, Perturbation, Plan, load

WRITE = "create configmaps shop/web"


def example(kind: str) -> Perturbation:
    values: dict[str, Any] = {
        "write": WRITE,
        "right": "create pods",
        "resource": "pods",
        "step": 1,
        "until": 2,
        "seconds": 1.5,
    }
    return Perturbation(kind, **{name: values[name] for name in KINDS[kind].needs})


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_survives_writing_and_reading(tmp_path: Path, kind: str) -> None:
    plan = Plan((example(kind), example(kind)))
    file = tmp_path / "plan.yaml"
    file.write_text(plan.text())
    assert load(file) == plan
    assert "{" not in str(example(kind))


def test_a_repeated_write_is_named_with_its_occurrence() -> None:
    plan = Plan((Perturbation("crash-after", WRITE, occurrence=2),))
    assert plan.text() == f"perturbations:\n- kind: crash-after\n  write: {WRITE}\n  occurrence: 2\n"
    assert str(plan) == f"the operator is killed after `{WRITE} (occurrence 2)`, before it gets the answer"
    assert str(Plan()) == "no perturbation"
    assert str(Plan(plan.perturbations * 4)) == f"{plan}; and 3 more perturbations"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[", "cannot be read as YAML"),
        ("[]", "a plan is a mapping whose only key `perturbations` has a list"),
        ("{perturbations: [], more: 1}", "a plan is a mapping whose only key `perturbations` has a list"),
        ("{perturbations: [{kind: crash}]}", "perturbation 1: `kind` must be one of crash-before, crash-after"),
        ("{perturbations: [{kind: crash-before}]}", "perturbation 1: crash-before needs the keys write; 'write'"),
        ("{perturbations: [{kind: no-bookmarks, step: 1}]}", "no-bookmarks needs the keys kind; 'step' is not right"),
        ("{perturbations: [{kind: crash-before, write: 5}]}", "`write` has the wrong type"),
        ("{perturbations: [{kind: crash-before, write: get pods a}]}", "`write` must be a verb, a resource and a key"),
        ("{perturbations: [{kind: pods-lost, step: true}]}", "`step` has the wrong type"),
    ],
)
def test_a_wrong_plan_is_explained(tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(file)
    assert error in str(caught.value)

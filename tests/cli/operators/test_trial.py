"""`ctrlmgr trial` runs real operators against real servers, and explains wrong options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ctrlmgr.trial.perturbation_plan import FAMILIES
from ctrlmgr.trial.scenario import to_document
from tests.cli.conftest import Run
from tests.trial.widgets import DEFINITION, SCENARIO, command


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """Return the options that name the files of a trial, which are in the working directory."""
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(DEFINITION))
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(to_document(SCENARIO)))
    return ["trial", "--setup", "crd.yaml", "--scenario", "scenario.yaml", "--nodes", "1", "--folder", "out"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_lost_answer_leads_to_a_second_object_and_the_plan_repeats_it(run: Run, given: list[str]) -> None:
    fast = ["--quiet", "2s", "--recovery", "5s", "--command", command("generates")]
    found = run(*given, *fast, "--perturbations", "answers", "--junit", "junit.xml", "--sarif", "found.sarif")
    assert found.code == 1, found.err
    assert "1. ConfigMap default/a-0-* exists 2 times at the end of the run; clean runs end with 1." in found.out
    assert "perturbation: the server executes `create configmaps default/a-0-*`" in found.out
    assert "ADDED     configmaps default/a-0-" in found.out
    assert 'type="end-state"' in Path("junit.xml").read_text()
    assert len(json.loads(Path("found.sarif").read_text())["runs"][0]["results"]) == 2
    (again,) = [line for line in found.out.splitlines() if "repeat it:" in line and "run-" in line][:1]
    plan = again.rpartition(" ")[2]
    repeated = run(*given[:-1], "again", *fast, "--plan", plan, "-o", "json")
    assert repeated.code == 1, repeated.err
    document = json.loads(repeated.out)
    assert document["runs"] == 3
    assert document["findings"][0]["oracle"] == "end-state"
    assert document["findings"][0]["plan"] == yaml.safe_load(Path(plan).read_text())["perturbations"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_correct_operator_survives(run: Run, given: list[str]) -> None:
    found = run(*given, "--command", command(), "--perturbations", "race,unobserved,watches", "--quiet", "2s")
    assert found.code == 0, found.out
    assert found.out.startswith("0 findings in 8 runs, ")
    assert "perturbing: 6 runs" in found.err


def test_an_operator_that_sends_nothing_is_explained(run: Run, given: list[str]) -> None:
    found = run(*given, "--command", "exit 1", "--quiet", "0.1s")
    assert found.code == 1
    assert found.err.splitlines()[-1].startswith(
        "error: the operator sent no request for a resource; its output is in out/run-00"
    )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--perturbations", "crash,cosmic-rays"), f"unknown name 'cosmic-rays'; use some of {', '.join(FAMILIES)}"),
        (("--service-account", "shop"), "--service-account needs a namespace and a name, such as shop/my-operator"),
        (("--folder", "."), "--folder: . exists already; name a new directory"),
        (("--plan", "crd.yaml"), "crd.yaml: a plan is a mapping whose only key `perturbations` has a list"),
        (("--scenario", "crd.yaml"), "crd.yaml: a scenario is a mapping whose only key `steps` has a list of steps"),
        (("--setup", "crd.yaml,rbac.yaml"), "rbac.yaml: cannot be read as YAML"),
    ],
)
def test_wrong_options_are_explained_before_anything_runs(
    run: Run, given: list[str], options: tuple[str, ...], error: str
) -> None:
    found = run(*given, "--command", "exit 1", *options)
    assert found.code == 2
    assert error in found.err
    assert not Path("out").exists()

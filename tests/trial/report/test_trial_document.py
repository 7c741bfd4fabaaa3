"""Results are written as JSON, JUnit's XML and SARIF."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.perturbation_plan import Perturbation, Plan
from ctrlmgr.trial.report.trial_document import as_json, as_junit, as_sarif
from ctrlmgr.trial.run_record import RunRecord
from ctrlmgr.trial.trial_runner import Reported, TrialResult

CRASH = Perturbation("crash-after", "create configmaps shop/web")
FINDING = Finding("end-state", "ConfigMap shop/web is missing.", "ConfigMap shop/web", 12)
RECORD = RunRecord(Path("out/run-004"), "trial-operator", 1, (), 12)
RESULT = TrialResult((Reported(FINDING, Plan((CRASH,)), RECORD, 2),), 9, 4, (CRASH,))
EMPTY = TrialResult((), 9, 4, ())


def test_json_has_the_findings_with_their_plans() -> None:
    assert as_json(RESULT) == {
        "kind": "TrialResult",
        "runs": 9,
        "writes": 4,
        "findings": [
            {
                "oracle": "end-state",
                "message": "ConfigMap shop/web is missing.",
                "object": "ConfigMap shop/web",
                "revision": 12,
                "plan": [{"kind": "crash-after", "write": "create configmaps shop/web"}],
                "planFile": "out/run-004/plan.yaml",
                "run": "out/run-004",
                "otherPlans": 2,
            }
        ],
        "unreached": [{"kind": "crash-after", "write": "create configmaps shop/web"}],
    }


def test_junit_has_a_failure_for_each_finding() -> None:
    suite = ElementTree.fromstring(as_junit(RESULT))
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == FINDING.message
    assert failure.text is not None
    assert "plan: out/run-004/plan.yaml" in failure.text


def test_junit_without_findings_has_one_success() -> None:
    suite = ElementTree.fromstring(as_junit(EMPTY))
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert [each.get("name") for each in suite] == ["no finding in 9 runs"]


def test_sarif_has_a_rule_for_each_oracle() -> None:
    (run,) = json.loads(as_sarif(RESULT, "1.0"))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["end-state"]
    (result,) = run["results"]
    assert result["ruleId"] == "end-state"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "out/run-004/plan.yaml"
    assert json.loads(as_sarif(EMPTY, "1.0"))["runs"][0]["results"] == []

"""The result of a trial as documents for programs: JSON, JUnit's XML and SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from ctrlmgr.trial.perturbation_plan import Plan
from ctrlmgr.trial.trial_runner import Reported, TrialResult

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_json(result: TrialResult) -> dict[str, Any]:
    """Return the result as a JSON document."""
    return {
        "kind": "TrialResult",
        "runs": result.runs,
        "writes": result.writes,
        "findings": [_finding(each) for each in result.reported],
        "unreached": [each.document() for each in result.unreached],
    }


def as_junit(result: TrialResult) -> bytes:
    """Return the result as JUnit's XML: one test case for each plan that led to a finding, or one that succeeded."""
    suite = ElementTree.Element("testsuite", name="ctrlmgr trial", failures=str(len(result.reported)), errors="0")
    suite.set("tests", str(max(1, len(result.reported))))
    for each in result.reported:
        case = ElementTree.SubElement(suite, "testcase", classname=each.finding.oracle, name=_name(each))
        failure = ElementTree.SubElement(case, "failure", type=each.finding.oracle, message=each.finding.message)
        failure.text = f"{each.finding.message}\nperturbation: {each.plan}\nplan: {each.plan_file}"
    if not result.reported:
        ElementTree.SubElement(suite, "testcase", classname="trial", name=f"no finding in {result.runs} runs")
    return b"<?xml version='1.0' encoding='utf-8'?>\n" + ElementTree.tostring(suite)


def as_sarif(result: TrialResult, version: str) -> bytes:
    """Return the result as SARIF, in which each oracle is a rule; `version` is that of ctrlmgr."""
    rules = sorted({each.finding.oracle for each in result.reported})
    driver = {
        "name": "ctrlmgr trial",
        "version": version,
        "rules": [{"id": rule, "shortDescription": {"text": rule}} for rule in rules],
    }
    run = {"tool": {"driver": driver}, "results": [_sarif_result(each) for each in result.reported]}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2).encode()


def _finding(each: Reported) -> dict[str, Any]:
    finding = each.finding
    return {
        "oracle": finding.oracle,
        "message": finding.message,
        "object": finding.object,
        "revision": finding.revision,
        "plan": _plan(each.plan),
        "planFile": str(each.plan_file),
        "run": str(each.record.folder),
        "otherPlans": each.others,
    }


def _plan(plan: Plan) -> Sequence[Mapping[str, Any]]:
    return [each.document() for each in plan.perturbations]


def _name(each: Reported) -> str:
    return f"{each.finding.object or each.finding.oracle}: {each.plan}"


def _sarif_result(each: Reported) -> dict[str, Any]:
    location = {"artifactLocation": {"uri": each.plan_file.as_posix()}}
    return {
        "ruleId": each.finding.oracle,
        "level": "error",
        "message": {"text": f"{each.finding.message} Perturbation: {each.plan}."},
        "locations": [{"physicalLocation": location}],
    }

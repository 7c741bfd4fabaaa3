"""Scenarios are read from YAML, and errors say what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ctrlmgr.errors import SettingsError
from ctrlmgr.trial.scenario import (
    Apply,
    Delete,
    Patch,
    Scale,
    Target,
    Wait,
    described,
    load,
    load_objects,
    parse,
    to_document,
)

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "shop"}}
NAMED = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "namespace": "shop"}
TARGET = Target("example.com/v1", "Widget", "shop", "a")
NODE = Target("v1", "Node", "", "node-1")


def steps_of(*steps: Any) -> tuple[Any, ...]:
    return parse({"steps": [*steps]}, "scenario.yaml", Path()).steps


def test_each_kind_of_step_is_read() -> None:
    assert steps_of(
        {"apply": WIDGET},
        {"patch": {**NAMED, "patch": {"spec": {"size": 2}}}},
        {"scale": {**NAMED, "replicas": 0}},
        {"wait": "quiet"},
        {"wait": {**NAMED, "condition": "Ready"}},
        {"delete": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}},
        {"wait": {**NAMED, "exists": False}},
    ) == (
        Apply((WIDGET,)),
        Patch(TARGET, {"spec": {"size": 2}}),
        Scale(TARGET, 0),
        Wait(),
        Wait(TARGET, "Ready"),
        Delete(NODE),
        Wait(TARGET, exists=False),
    )


def test_a_scenario_survives_writing_and_reading() -> None:
    given = {
        "steps": [
            {"apply": [WIDGET]},
            {"patch": {**NAMED, "patch": {"spec": None}}},
            {"scale": {**NAMED, "replicas": 3}},
            {"wait": "quiet"},
            {"wait": {**NAMED, "condition": "Ready"}},
            {"wait": {**NAMED, "exists": False}},
            {"delete": NAMED},
        ]
    }
    assert to_document(parse(given, "scenario.yaml", Path())) == given


def test_applied_files_are_relative_to_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    both = {"apiVersion": "v1", "kind": "List", "items": [WIDGET, WIDGET]}
    (tmp_path / "manifests" / "widgets.yaml").write_text(f"{yaml.safe_dump(both)}---\n---\n{yaml.safe_dump(WIDGET)}")
    (tmp_path / "scenario.yaml").write_text("steps: [{apply: manifests/widgets.yaml}]")
    assert load(tmp_path / "scenario.yaml").steps == (Apply((WIDGET, WIDGET, WIDGET)),)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("apply", "step 1: a step is a mapping with one key of apply, patch, scale, delete, wait"),
        ({"applied": WIDGET}, "step 1: a step is a mapping with one key of apply, patch, scale, delete, wait"),
        ({"apply": WIDGET, "wait": "quiet"}, "step 1: a step is a mapping with one key of"),
        ({"apply": {"kind": "Widget"}}, "step 1: apply: an object needs apiVersion, kind and metadata.name"),
        ({"apply": []}, "step 1: apply: no objects; give an object, the path of a file, or a list of both"),
        ({"delete": "a"}, "step 1: delete: expected a mapping with apiVersion, kind, name, namespace"),
        ({"delete": {**NAMED, "nam": "a"}}, "step 1: delete: unknown key 'nam'; known keys are apiVersion, kind"),
        ({"delete": {**NAMED, "name": ""}}, "step 1: delete: `name` must be a string that is not empty"),
        ({"scale": NAMED}, "step 1: scale: `replicas` must be a whole number of at least 0"),
        ({"scale": {**NAMED, "replicas": True}}, "step 1: scale: `replicas` must be a whole number of at least 0"),
        ({"patch": NAMED}, "step 1: patch: `patch` must be a mapping, a JSON merge patch"),
        ({"wait": 5}, "exists or `quiet`"),
        ({"wait": {**NAMED, "exists": "no"}}, "step 1: wait: `condition` must be a condition's type such as Ready"),
        ({"wait": {**NAMED, "condition": "Ready", "exists": False}}, "step 1: wait: an object that does not exist"),
    ],
)
def test_a_wrong_step_is_explained(step: Any, error: str) -> None:
    with pytest.raises(SettingsError) as caught:
        steps_of(step)
    assert error in str(caught.value)


@pytest.mark.parametrize("document", [None, [], {}, {"steps": []}, {"steps": [{"wait": "quiet"}], "more": 1}])
def test_a_scenario_has_steps_and_nothing_else(document: Any) -> None:
    with pytest.raises(SettingsError, match="a scenario is a mapping whose only key `steps` has a list of steps"):
        parse(document, "scenario.yaml", Path())


@pytest.mark.parametrize("text", [None, "steps: [", "steps: \x00"])
def test_an_unreadable_file_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "scenario.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingsError, match=r"scenario\.yaml: cannot be read as YAML"):
        load(file)
    with pytest.raises(SettingsError, match=r"scenario\.yaml: cannot be read as YAML"):
        load_objects(file)


def test_steps_are_described_in_a_few_words() -> None:
    steps = steps_of({"apply": WIDGET}, {"wait": {**NAMED, "exists": False}}, {"scale": {**NAMED, "replicas": 2}})
    assert [described(step) for step in steps] == [
        "apply Widget shop/a",
        "wait until Widget shop/a is gone",
        "scale Widget shop/a to 2",
    ]
    assert described(Delete(NODE)) == "delete Node node-1"

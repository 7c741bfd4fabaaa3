"""Histories are accepted as planned, and lead back to the first state, by the engine of the API server."""

from __future__ import annotations

import copy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.trial.generation.generated_scenarios import History, histories, merge_patch
from ctrlmgr.trial.generation.judged_changes import errors_of
from ctrlmgr.trial.scenario import Apply, Delete, Patch, Wait, parse, to_document
from tests.controllers.customresourcedefinitions.defined import DefinedStage
from tests.controllers.worked_stage import MERGE
from tests.trial.generation.kinds import SPEC, kind_of

WIDGETS = "/apis/example.com/v1/namespaces/shop/widgets"


def found(seed: int = 1, **options: Any) -> list[History]:
    definition, version = kind_of(SPEC)
    return [*histories(definition, version, Random(seed), **options)]


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1_000))
def test_each_write_is_judged_correctly_and_the_last_state_is_the_first_one(seed: int) -> None:
    _, version = kind_of(SPEC)
    for history in found(seed):
        state: Any = None
        for write in history.writes:
            if write.verb == "delete":
                state = None
                continue
            errors = errors_of(version, copy.deepcopy(write.state), *([] if state is None else [state]))
            assert [each.message for each in errors[:1]] == [write.refused][: len(errors)]
            assert bool(errors) == bool(write.refused)
            state = state if write.refused else write.state
        assert state == history.first


def test_equal_random_numbers_give_equal_histories() -> None:
    assert found(3) == found(3)
    assert found(3) != found(4)


def test_a_forbidden_way_back_deletes_and_creates() -> None:
    verbs = {each.title: [write.verb for write in each.writes] for each in found()}
    assert verbs["change spec.storageClass"] == ["create", "patch", "delete", "create"]
    assert verbs["change spec.replicas"] == ["create", "patch", "patch"]
    assert verbs["refused change of spec.replicas"] == ["create", "patch"]


def test_the_example_of_the_user_is_the_first_state() -> None:
    example = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "mine", "namespace": "shop"}}
    spec = {"replicas": 5, "size": "1Gi", "version": "1.0.0"}
    first = found(example={**example, "spec": spec})[0].first
    assert first["spec"]["replicas"] == 5
    assert first["metadata"]["name"] == "mine"
    with pytest.raises(ValueError, match=r"the example object is not valid: spec\.replicas: Required value"):
        found(example={**example, "spec": {"size": 1, "version": "1.0.0"}})


def test_a_scenario_waits_after_each_accepted_write_and_deletes_the_object() -> None:
    history = next(each for each in found() if each.title == "change spec.replicas")
    steps = history.scenario().steps
    assert [type(each) for each in steps] == [Apply, Wait, Patch, Wait, Patch, Wait, Delete, Wait, Wait]
    refused = next(each for each in found() if each.title == "refused change of spec.replicas")
    assert Patch not in [type(each) for each in refused.scenario().steps]
    document = to_document(history.scenario())
    assert to_document(parse(document, "generated", Path())) == document


def test_the_server_accepts_and_refuses_the_writes_as_planned() -> None:
    stage = DefinedStage()
    definition, _ = kind_of(SPEC)
    stage.define({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **definition.raw})
    for number, history in enumerate(found(2, sequences=2)):
        last = _play(stage, history, f"widget-{number}")
        assert last["spec"] == history.first["spec"]


def _play(stage: DefinedStage, history: History, name: str) -> dict[str, Any]:
    """Send the writes of a history, check the judgement of each, and return the object after the last one."""
    for write in history.writes:
        place = f"{WIDGETS}/{name}"
        body = {**write.state, "metadata": {"name": name, "namespace": "shop"}}
        if write.verb == "create":
            answer = stage.send("POST", WIDGETS, body)
        elif write.verb == "delete":
            answer = stage.send("DELETE", place)
        else:
            answer = stage.send("PATCH", place, write.patch, media_type=MERGE)
        assert (answer.code >= 400) == bool(write.refused), answer.body
        assert write.refused in str(answer.body.get("message", "")) or not write.refused
    return dict(stage.send("GET", f"{WIDGETS}/{name}").body)


def test_a_merge_patch_leads_from_one_object_to_the_other() -> None:
    before = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1], "f": 1}
    after = {"a": 1, "b": {"c": 3}, "e": [2], "f": True, "g": {"h": 1}}
    patch = {"b": {"c": 3, "d": None}, "e": [2], "f": True, "g": {"h": 1}}
    assert merge_patch(before, after) == patch

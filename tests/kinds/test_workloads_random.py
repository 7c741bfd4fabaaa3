"""Tests of random objects: a strategy accepts each object or refuses it with Kubernetes' messages, and never raises an
internal error.
"""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.field import Path
from ctrlmgr.errors import ApiError
from ctrlmgr.kinds.core.pod.warnings import pod_warnings
from tests.kinds.random_objects import mutated, random_value
from tests.kinds.refusals import VALID
from tests.kinds.stage import KINDS, Stage, staged


@pytest.fixture(scope="module", params=VALID)
def stage(request: pytest.FixtureRequest) -> Stage:
    return staged(request.param)


def valid(stage: Stage) -> dict[str, Any]:
    return copy.deepcopy(VALID[stage.path])


def test_minimal_objects_are_accepted(stage: Stage) -> None:
    made = stage.create(valid(stage))
    assert stage.update(made, {}) == made, "writing it back changes nothing"
    assert stage.update(made, {"metadata": {"labels": {"l": "1"}}})["metadata"]["labels"]["l"] == "1"


@pytest.mark.parametrize("seed", range(2))
def test_random_objects_are_accepted_or_refused_like_kubernetes(stage: Stage, seed: int) -> None:
    random = Random(f"{stage.kind.name} {seed}")
    outcomes = {"taken": 0, "refused": 0}
    for _ in range(60):
        fields = {key: each for key, each in random_value(stage.kind.schema, random).items() if key != "metadata"}
        try:
            stage.create(fields)
            outcomes["taken"] += 1
        except ApiError:
            outcomes["refused"] += 1
    assert outcomes["refused"], outcomes


@pytest.mark.parametrize("seed", range(2))
def test_random_updates_are_accepted_or_refused_like_kubernetes(stage: Stage, seed: int) -> None:
    random = Random(f"{stage.kind.name} {seed}")
    base = stage.create(valid(stage))
    outcomes = {"taken": 0, "refused": 0}
    parts = [part for part in stage.kind.subresources if stage.kind.subresources[part].kind == stage.kind.gvk]
    for number in range(150):
        changed = mutated({key: each for key, each in base.items() if key != "metadata"}, stage.kind.schema, random)
        changed.pop("metadata", None)
        part = ("", *parts)[number % (len(parts) + 1)]
        old = base if number % 3 else odd(stage, base, random)
        try:
            stage.update(old, changed, part)
            outcomes["taken"] += 1
        except ApiError:
            outcomes["refused"] += 1
    assert outcomes["taken"], outcomes


def odd(stage: Stage, base: dict[str, Any], random: Random) -> dict[str, Any]:
    """Return an object that was stored when older validation rules applied."""
    fields = mutated({key: each for key, each in base.items() if key != "metadata"}, stage.kind.schema, random)
    fields["metadata"] = base["metadata"]
    return stage.stored(stage.read(fields))


def test_random_templates_cause_kubernetes_warnings() -> None:
    random = Random(7)
    schema = KINDS.definitions.schema("io.k8s.api.core.v1.PodTemplateSpec")
    assert any(pod_warnings(random_value(schema, random), Path()) for _ in range(100))

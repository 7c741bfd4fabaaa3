"""What the engine makes of the metadata of kinds that look at it in ways of their own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.stage import Stage

BUDGETS = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
JOBS = "/apis/batch/v1/namespaces/shop/jobs"
WRONG: dict[str, Any] = {"labels": {"a": "b c"}}
TEMPLATE = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example.invalid/c:1"}]}


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.namespace("shop")
    return stage


def causes(stage: Stage, verb: str, path: str, body: dict[str, Any]) -> list[str]:
    response = stage.send(verb, path, body)
    return [each["field"] for each in response.body["details"]["causes"]] if response.code == 422 else []


def budget(least: int = 1, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", **metadata}, "spec": {"minAvailable": least}}


def test_metadata_of_a_budget_are_looked_at_when_all_else_is_right(stage: Stage) -> None:
    assert causes(stage, "POST", BUDGETS, budget(-1, **WRONG)) == ["spec.minAvailable"]
    assert causes(stage, "POST", BUDGETS, budget(**WRONG)) == ["metadata.labels"]
    assert causes(stage, "POST", BUDGETS, {"metadata": {}, "spec": {}}) == ["metadata.name"]


def test_a_budget_may_have_any_finalizer(stage: Stage) -> None:
    assert stage.send("POST", BUDGETS, budget(finalizers=["nodomain"])).code == 201


def test_an_update_of_a_budget_tells_twice(stage: Stage) -> None:
    made = stage.send("POST", BUDGETS, budget()).body
    version = made["metadata"]["resourceVersion"]
    assert causes(stage, "PUT", f"{BUDGETS}/p", budget(resourceVersion=version, **WRONG)) == ["metadata.labels"] * 2


def test_an_update_of_a_slice_tells_three_times(stage: Stage) -> None:
    body: dict[str, Any] = {"metadata": {"name": "p"}, "addressType": "IPv4", "endpoints": []}
    assert stage.send("POST", SLICES, body).code == 201
    body["metadata"] |= WRONG
    assert causes(stage, "PUT", f"{SLICES}/p", body) == ["metadata.labels"] * 3


def job(name: str, labels: dict[str, str] | None, own: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": name} | ({} if own is None else {"labels": own})
    return {"metadata": metadata, "spec": {"template": {"metadata": {"labels": labels}, "spec": TEMPLATE}}}


@pytest.mark.parametrize("labels", [None, {"a": "b"}])
def test_a_job_without_labels_has_those_of_its_pods(stage: Stage, labels: dict[str, str] | None) -> None:
    for name in ("one", "two", "three"):  # the same body again, which might be remembered
        made = stage.send("POST", JOBS, job(name, labels)).body
        assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"]
        assert made["metadata"]["labels"]["job-name"] == name


def test_a_job_with_labels_keeps_them(stage: Stage) -> None:
    made = stage.send("POST", JOBS, job("one", {"a": "b"}, {"a": "b"})).body
    assert made["metadata"]["labels"] == {"a": "b"}


def test_a_name_that_pods_cannot_be_labelled_with_is_no_label_of_the_job_either(stage: Stage) -> None:
    told = causes(stage, "POST", JOBS, job("x" * 64, {"a": "b"}))
    assert told == ["metadata.labels"] * 2 + ["spec.template.labels"] * 2
    assert causes(stage, "POST", JOBS, job("x" * 64, None)) == ["spec.template.labels"] * 2

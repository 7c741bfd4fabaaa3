"""Tests of the metadata of kinds that the engine treats specially."""

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


def test_metadata_of_a_budget_is_checked_last(stage: Stage) -> None:
    assert causes(stage, "POST", BUDGETS, budget(-1, **WRONG)) == ["spec.minAvailable"]
    assert causes(stage, "POST", BUDGETS, budget(**WRONG)) == ["metadata.labels"]
    assert causes(stage, "POST", BUDGETS, {"metadata": {}, "spec": {}}) == ["metadata.name"]


def test_a_budget_can_have_any_finalizer(stage: Stage) -> None:
    assert stage.send("POST", BUDGETS, budget(finalizers=["nodomain"])).code == 201


def test_an_update_of_a_budget_reports_metadata_errors_twice(stage: Stage) -> None:
    made = stage.send("POST", BUDGETS, budget()).body
    version = made["metadata"]["resourceVersion"]
    assert causes(stage, "PUT", f"{BUDGETS}/p", budget(resourceVersion=version, **WRONG)) == ["metadata.labels"] * 2


def test_an_update_of_a_slice_reports_metadata_errors_three_times(stage: Stage) -> None:
    body: dict[str, Any] = {"metadata": {"name": "p"}, "addressType": "IPv4", "endpoints": []}
    assert stage.send("POST", SLICES, body).code == 201
    body["metadata"] |= WRONG
    assert causes(stage, "PUT", f"{SLICES}/p", body) == ["metadata.labels"] * 3


def job(name: str, labels: dict[str, str] | None, own: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": name} | ({} if own is None else {"labels": own})
    return {"metadata": metadata, "spec": {"template": {"metadata": {"labels": labels}, "spec": TEMPLATE}}}


@pytest.mark.parametrize("labels", [None, {"a": "b"}])
def test_a_job_without_labels_gets_its_templates(stage: Stage, labels: dict[str, str] | None) -> None:
    for name in ("one", "two", "three"):  # an equal body again, which a cache might contain
        made = stage.send("POST", JOBS, job(name, labels)).body
        assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"]
        assert made["metadata"]["labels"]["job-name"] == name


def test_a_job_with_labels_keeps_them(stage: Stage) -> None:
    made = stage.send("POST", JOBS, job("one", {"a": "b"}, {"a": "b"})).body
    assert made["metadata"]["labels"] == {"a": "b"}


def test_a_name_that_is_no_label_value_is_no_label_of_the_job(stage: Stage) -> None:
    told = causes(stage, "POST", JOBS, job("x" * 64, {"a": "b"}))
    assert told == ["metadata.labels"] * 2 + ["spec.template.labels"] * 2
    assert causes(stage, "POST", JOBS, job("x" * 64, None)) == ["spec.template.labels"] * 2


def test_errors_of_events_name_the_stored_kind(stage: Stage) -> None:
    path = "/apis/events.k8s.io/v1/namespaces/shop/events"
    response = stage.send("POST", path, {"metadata": {"name": "e"}, "regarding": {"namespace": "shop"}})
    assert response.body["message"].startswith('Event "e" is invalid: ')


def test_metadata_of_a_core_event_is_checked_last(stage: Stage) -> None:
    event = {"metadata": {"name": "e", **WRONG}, "involvedObject": {"namespace": "other"}}
    path = "/api/v1/namespaces/shop/events"
    assert causes(stage, "POST", path, event) == ["involvedObject.namespace"]
    assert causes(stage, "POST", path, {**event, "involvedObject": {"namespace": "shop"}}) == ["metadata.labels"]


def test_signing_requests_can_have_any_name_valid_in_a_url(stage: Stage) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    spec = {"request": "", "signerName": "example.com/s", "usages": ["any"]}
    assert "metadata.name" not in causes(stage, "POST", path, {"metadata": {"name": "a/b"}, "spec": spec})


LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"


def test_flow_control_does_not_compare_metadata(stage: Stage) -> None:
    level = {"metadata": {"name": "a"}, "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}
    assert stage.send("POST", LEVELS, level).code == 201
    found = causes(stage, "PUT", f"{LEVELS}/a", {**level, "metadata": {"name": "a", **WRONG}})
    assert found == ["metadata.labels"] * 3


def test_flow_control_is_updated_without_a_resource_version(stage: Stage) -> None:
    level = {"metadata": {"name": "b"}, "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}
    assert stage.send("POST", LEVELS, level).code == 201
    assert stage.send("PUT", f"{LEVELS}/b", level).code == 200


def test_a_put_creates_a_runtime_class(stage: Stage) -> None:
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    named = {"metadata": {"name": "r", "finalizers": ["anything"]}, "handler": "h"}
    response = stage.send("PUT", f"{classes}/r", named)
    assert response.code == 201
    tolerations = [{"key": "k", "operator": "Exists"}, {"key": "k", "operator": "Exists", "tolerationSeconds": 1}]
    changed = {**response.body, "scheduling": {"tolerations": tolerations}}
    assert causes(stage, "PUT", f"{classes}/r", changed) == [
        "scheduling.tolerations[1].effect",
        "scheduling.tolerations[1]",
    ]

"""Tests of the default propagation policy of deletions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.stage import Stage

PODS = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
JOBS = "/apis/batch/v1/namespaces/a/jobs"
CONTROLLERS = "/api/v1/namespaces/a/replicationcontrollers"
EVENTS = "/api/v1/namespaces/a/events"


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.namespace("a")
    always = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": PODS["spec"]["containers"]}}
    for path, fields in (
        (JOBS, {"spec": {"template": PODS}}),
        (CONTROLLERS, {"spec": {"selector": {"a": "b"}, "template": always}}),
        (EVENTS, {"involvedObject": {"namespace": "a"}}),
    ):
        answer = stage.send("POST", path, {"metadata": {"name": "it"}, **fields})
        assert answer.code == 201, answer.body
    return stage


def finalizers(stage: Stage, path: str, **options: Any) -> list[str] | None:
    """Delete an object; return the finalizers that still delay its removal, or None if the object was removed."""
    answer = stage.send("DELETE", f"{path}/it", options)
    assert answer.code == 200, answer.body
    found = stage.send("GET", f"{path}/it")
    return found.body["metadata"]["finalizers"] if found.code == 200 else None


@pytest.mark.parametrize("path", [JOBS, CONTROLLERS])
def test_jobs_and_replication_controllers_orphan_their_pods_by_default(stage: Stage, path: str) -> None:
    assert finalizers(stage, path) == ["orphan"]


@pytest.mark.parametrize("path", [JOBS, CONTROLLERS])
def test_a_propagation_policy_overrides_the_default(stage: Stage, path: str) -> None:
    assert finalizers(stage, path, propagationPolicy="Background") is None


@pytest.mark.parametrize("policy", ["Orphan", "Foreground"])
def test_events_have_no_dependents_regardless_of_options(stage: Stage, policy: str) -> None:
    assert finalizers(stage, EVENTS, propagationPolicy=policy) is None


def test_deleting_a_job_without_a_propagation_policy_causes_a_warning(stage: Stage) -> None:
    dry = {"dryRun": ["All"]}
    [warning] = stage.send("DELETE", f"{JOBS}/it", dry).warnings
    assert warning == (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
        "or set propagationPolicy=Orphan to suppress this warning"
    )
    assert not stage.send("DELETE", f"{JOBS}/it", {**dry, "propagationPolicy": "Orphan"}).warnings
    assert not stage.send("DELETE", f"{JOBS}/it", {**dry, "orphanDependents": True}).warnings
    assert not stage.send("DELETE", f"{CONTROLLERS}/it", dry).warnings

"""Tests of quotas with the real engine: usage is charged together with the write of the object, excess is refused, and
deletion releases usage.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.resourcequota import Options
from ctrlmgr.controllers.resourcequota.controller import build
from ctrlmgr.eventlog import EventType
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

MAPS = "/api/v1/namespaces/shop/configmaps"
PODS = "/api/v1/namespaces/shop/pods"
QUOTAS = "/api/v1/namespaces/shop/resourcequotas"


def controller(stage: WorkedStage) -> Controller:
    return build(StageContext(stage), Options())


@pytest.fixture
def stage() -> WorkedStage:
    stage = WorkedStage(controller)
    stage.namespace("shop")
    return stage


def limit(stage: WorkedStage, name: str = "q", **spec: Any) -> None:
    stage.create(QUOTAS, {"metadata": {"name": name}, "spec": spec})
    stage.work()


def used(stage: WorkedStage, name: str = "q") -> dict[str, str]:
    status: dict[str, Any] = stage.send("GET", f"{QUOTAS}/{name}").body["status"]
    found: dict[str, str] = status["used"]
    return found


def a_map(stage: WorkedStage, name: str) -> Any:
    return stage.send("POST", MAPS, {"metadata": {"name": name}})


def a_pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def test_existing_objects_are_counted(stage: WorkedStage) -> None:
    a_map(stage, "a")
    limit(stage, hard={"configmaps": "2", "count/secrets": "1", "count/widgets.example.com": "1"})
    assert used(stage) == {"configmaps": "1", "count/secrets": "0"}


def test_the_charge_and_the_object_are_one_append(stage: WorkedStage) -> None:
    limit(stage, hard={"configmaps": "2"})
    before = stage.log.head().revision
    assert a_map(stage, "a").code == 201
    events = stage.log.events_after(before, limit=10)
    assert [(event.type, event.object.name) for event in events] == [
        (EventType.ADDED, "a"),
        (EventType.MODIFIED, "q"),
    ]
    assert len({event.append_id for event in events}) == 1
    assert used(stage) == {"configmaps": "1"}


def test_an_object_above_the_quota_is_refused(stage: WorkedStage) -> None:
    limit(stage, hard={"configmaps": "1"})
    a_map(stage, "a")
    refused = a_map(stage, "b")
    assert (refused.code, refused.message) == (
        403,
        'configmaps "b" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, '
        "limited: configmaps=1",
    )


def test_a_deletion_releases_its_usage(stage: WorkedStage) -> None:
    limit(stage, hard={"configmaps": "1"})
    a_map(stage, "a")
    stage.delete(f"{MAPS}/a")
    stage.work()
    assert used(stage) == {"configmaps": "0"}
    assert a_map(stage, "b").code == 201


def test_a_dry_run_is_checked_and_not_charged(stage: WorkedStage) -> None:
    limit(stage, hard={"configmaps": "1"})
    assert stage.send("POST", MAPS, {"metadata": {"name": "a"}}, query={"dryRun": "All"}).code == 201
    assert used(stage) == {"configmaps": "0"}
    a_map(stage, "a")
    assert stage.send("POST", MAPS, {"metadata": {"name": "b"}}, query={"dryRun": "All"}).code == 403


def test_a_service_that_changes_its_type_is_charged_for_the_difference(stage: WorkedStage) -> None:
    path = "/api/v1/namespaces/shop/services"
    limit(stage, hard={"services": "1", "services.nodeports": "1"})
    stage.create(path, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    stage.patch(f"{path}/s", {"spec": {"type": "NodePort"}})
    assert used(stage) == {"services": "1", "services.nodeports": "1"}
    stage.patch(f"{path}/s", {"spec": {"type": "ClusterIP"}})
    stage.work()
    assert used(stage) == {"services": "1", "services.nodeports": "0"}


def test_a_terminated_pod_releases_compute_and_still_counts_as_an_object(stage: WorkedStage) -> None:
    limit(stage, hard={"pods": "1", "requests.cpu": "1", "count/pods": "5"})
    stage.create(PODS, a_pod("a"))
    assert used(stage) == {"pods": "1", "requests.cpu": "100m", "count/pods": "1"}
    stage.send(
        "PATCH", f"{PODS}/a/status", {"status": {"phase": "Succeeded"}}, media_type="application/merge-patch+json"
    )
    stage.work()
    assert used(stage) == {"pods": "0", "requests.cpu": "0", "count/pods": "1"}


def test_a_pod_that_enters_a_scope_is_charged_there(stage: WorkedStage) -> None:
    limit(stage, "ends", hard={"pods": "1"}, scopes=["Terminating"])
    limit(stage, "stays", hard={"pods": "2"}, scopes=["NotTerminating"])
    stage.create(PODS, a_pod("a", activeDeadlineSeconds=60))
    stage.create(PODS, a_pod("b"))
    assert (used(stage, "ends"), used(stage, "stays")) == ({"pods": "1"}, {"pods": "1"})
    refused = stage.send(
        "PATCH", f"{PODS}/b", {"spec": {"activeDeadlineSeconds": 9}}, media_type="application/merge-patch+json"
    )
    assert refused.code == 403
    assert refused.message.startswith('pods "b" is forbidden: exceeded quota: ends, requested: pods=1')


def test_one_refusing_quota_of_several_is_enough_and_none_is_charged(stage: WorkedStage) -> None:
    limit(stage, "a", hard={"configmaps": "5"})
    limit(stage, "b", hard={"count/configmaps": "0"})
    assert a_map(stage, "x").code == 403
    assert used(stage, "a") == {"configmaps": "0"}


def test_nothing_is_charged_before_the_first_count(stage: WorkedStage) -> None:
    stage.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}})
    assert a_map(stage, "a").code == 201, "nothing is limited before the status says so"
    stage.send(
        "PATCH",
        f"{QUOTAS}/q/status",
        {"status": {"hard": {"configmaps": "1"}}},
        media_type="application/merge-patch+json",
    )
    refused = a_map(stage, "b")
    assert refused.message == 'configmaps "b" is forbidden: status unknown for quota: q, resources: configmaps'


def test_a_changed_quota_applies_its_new_limits(stage: WorkedStage) -> None:
    limit(stage, hard={"configmaps": "1"})
    a_map(stage, "a")
    stage.patch(f"{QUOTAS}/q", {"spec": {"hard": {"configmaps": "2", "secrets": "1"}}})
    stage.work()
    assert used(stage) == {"configmaps": "1", "secrets": "0"}
    assert a_map(stage, "b").code == 201


def test_a_new_quota_is_counted_again_for_writes_in_progress(stage: WorkedStage) -> None:
    limit(stage, hard={"configmaps": "5"})
    stage.log_client.create(stage_map("sneaked"))  # as a write that was decided before the quota existed
    assert used(stage) == {"configmaps": "0"}
    stage.pass_by(1.0)
    assert used(stage) == {"configmaps": "1"}


def stage_map(name: str) -> Object:
    return Object.from_dict({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}})


def test_quotas_are_recounted_periodically(stage: WorkedStage) -> None:
    limit(stage, hard={"configmaps": "5"})
    for seconds in (1.0, 5.0, 30.0):
        stage.pass_by(seconds)
    stage.log_client.create(stage_map("imported"))
    stage.pass_by(300.0)
    assert used(stage) == {"configmaps": "1"}

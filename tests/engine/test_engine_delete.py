from __future__ import annotations

from typing import Any

import pytest

from tests.engine.stage import Response, Stage

MAPS = "/api/v1/namespaces/shop/configmaps"
PODS = "/api/v1/namespaces/shop/pods"
SERVICES = "/api/v1/namespaces/shop/services"
CONTAINERS = [{"name": "c", "image": "example.invalid/c:1"}]


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.namespace("shop")
    return stage


def create(stage: Stage, path: str, name: str, **rest: Any) -> dict[str, Any]:
    response = stage.send("POST", path, {"metadata": {"name": name, **rest.pop("metadata", {})}, **rest})
    assert response.code == 201, response.body
    created: dict[str, Any] = response.body
    return created


def pod(stage: Stage, node: str = "n", **metadata: Any) -> dict[str, Any]:
    spec = {"containers": CONTAINERS, "nodeName": node} if node else {"containers": CONTAINERS}
    return create(stage, PODS, "p", spec=spec, metadata=metadata)


def happened(stage: Stage, after: int) -> list[str]:
    return [f"{event.type.name}@{event.revision}" for event in stage.log.events_after(after)]


def times(response: Response) -> tuple[Any, Any]:
    metadata = response.body["metadata"]
    return metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")


def test_most_deletions_are_immediate_and_return_a_status(stage: Stage) -> None:
    created = create(stage, MAPS, "a", data={"k": "v"})
    gone = stage.send("DELETE", f"{MAPS}/a")
    assert gone == Response(
        200,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]},
        },
    )
    (event,) = stage.log.events_after(2)
    assert (event.type.name, event.object.to_dict()["data"]) == ("DELETED", {"k": "v"})
    assert stage.send("DELETE", f"{MAPS}/a").message == 'configmaps "a" not found'


def test_some_deletions_return_the_object_at_its_last_revision(stage: Stage) -> None:
    create(stage, SERVICES, "s", spec={"ports": [{"port": 80}]})
    gone = stage.send("DELETE", f"{SERVICES}/s")
    assert (gone.code, gone.body["kind"]) == (200, "Service")
    assert int(gone.body["metadata"]["resourceVersion"]) == stage.log.head().revision - 1  # its address was released
    assert stage.send("GET", "/apis/networking.k8s.io/v1/ipaddresses").body["items"] == []


def test_finalizers_keep_a_deleted_object(stage: Stage) -> None:
    create(stage, MAPS, "a", metadata={"finalizers": ["a.b/c"]})
    marked = stage.send("DELETE", f"{MAPS}/a")
    assert times(marked) == ("2026-01-01T00:00:00Z", 0)
    stage.clock.step(60)
    head = stage.log.head()
    for body in (None, {"gracePeriodSeconds": 0}):
        assert stage.send("DELETE", f"{MAPS}/a", body).body == marked.body
    assert stage.log.head() == head


def test_a_pod_on_a_node_has_a_grace_period_that_can_only_be_shortened(stage: Stage) -> None:
    pod(stage)
    asked = stage.send("DELETE", f"{PODS}/p", query={"gracePeriodSeconds": "20"})
    assert (times(asked), asked.body["metadata"]["generation"]) == (("2026-01-01T00:00:20Z", 20), 2)
    stage.clock.step(5)
    shorter = stage.send("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 10})
    assert (times(shorter), shorter.body["metadata"]["generation"]) == (("2026-01-01T00:00:10Z", 10), 2)
    for body in ({"gracePeriodSeconds": 25}, None):
        assert stage.send("DELETE", f"{PODS}/p", body).body == shorter.body
    head = stage.log.head().revision
    gone = stage.send("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert times(gone) == ("2026-01-01T00:00:00Z", 0)
    assert happened(stage, head) == ["MODIFIED@5", "DELETED@6"]
    assert gone.body["metadata"]["resourceVersion"] == "6"
    first, last = stage.log.events_after(head)
    assert first.append_id == last.append_id
    assert first.object.body == last.object.body


def test_a_pod_without_a_node_is_deleted_at_once(stage: Stage) -> None:
    pod(stage, node="")
    gone = stage.send("DELETE", f"{PODS}/p")
    assert (gone.code, times(gone)) == (200, ("2026-01-01T00:00:00Z", 0))
    assert happened(stage, 2) == ["MODIFIED@3", "DELETED@4"]


def test_an_expired_pod_waits_for_its_finalizers(stage: Stage) -> None:
    pod(stage, node="", finalizers=["a.b/c"])
    kept = stage.send("DELETE", f"{PODS}/p")
    assert (kept.code, times(kept)) == (200, ("2026-01-01T00:00:00Z", 0))
    patch = {"metadata": {"finalizers": None}}
    assert stage.send("PATCH", f"{PODS}/p", patch, media_type="application/merge-patch+json").code == 200
    assert stage.send("GET", f"{PODS}/p").code == 404


@pytest.mark.parametrize(
    ("body", "code", "finalizers"),
    [
        ({"propagationPolicy": "Foreground"}, 200, ["foregroundDeletion"]),
        ({"propagationPolicy": "Orphan"}, 200, ["orphan"]),
        ({"orphanDependents": True}, 200, ["orphan"]),
    ],
)
def test_dependents_are_left_to_the_garbage_collector(
    stage: Stage, body: dict[str, Any], code: int, finalizers: list[str]
) -> None:
    create(stage, MAPS, "a")
    marked = stage.send("DELETE", f"{MAPS}/a", body)
    assert (marked.code, marked.body["metadata"]["finalizers"]) == (code, finalizers)


def test_a_deletion_with_finalizers_returns_202(stage: Stage) -> None:
    create(stage, MAPS, "a", metadata={"finalizers": ["a.b/c"]})
    assert stage.send("DELETE", f"{MAPS}/a", {"orphanDependents": False}).code == 202
    create(stage, MAPS, "b")
    assert stage.send("DELETE", f"{MAPS}/b", {"orphanDependents": False}).code == 200


def test_a_body_overrides_the_query(stage: Stage) -> None:
    create(stage, MAPS, "a")
    query = {"propagationPolicy": "Foreground"}
    assert stage.send("DELETE", f"{MAPS}/a", {"propagationPolicy": "Background"}, query=query).body["kind"] == "Status"


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"propagationPolicy": "Wrong"}, 422, 'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy'),
        ({"preconditions": {"uid": "x"}}, 409, 'Operation cannot be fulfilled on ConfigMap "a": the UID in the'),
        ({"preconditions": {"resourceVersion": "1"}}, 409, 'Operation cannot be fulfilled on ConfigMap "a": the Res'),
        (b"{bad", 400, ""),
    ],
)
def test_invalid_deletions_are_refused(stage: Stage, body: Any, code: int, message: str) -> None:
    create(stage, MAPS, "a")
    head = stage.log.head()
    refused = stage.send("DELETE", f"{MAPS}/a", body)
    assert refused.code == code
    assert refused.message.startswith(message)
    assert stage.log.head() == head


def test_dry_runs_return_the_result_and_delete_nothing(stage: Stage) -> None:
    create(stage, MAPS, "a")
    create(stage, MAPS, "b", metadata={"finalizers": ["a.b/c"]})
    create(stage, SERVICES, "s", spec={"ports": [{"port": 80}]})
    pod(stage, node="")
    head = stage.log.head()
    shown = {
        path: stage.send("DELETE", path, {"dryRun": ["All"]})
        for path in (f"{MAPS}/a", f"{MAPS}/b", f"{SERVICES}/s", f"{PODS}/p")
    }
    assert [response.body["kind"] for response in shown.values()] == ["Status", "ConfigMap", "Service", "Pod"]
    assert times(shown[f"{MAPS}/b"]) == times(shown[f"{PODS}/p"]) == ("2026-01-01T00:00:00Z", 0)
    assert stage.log.head() == head


def test_a_namespace_is_deleted_in_two_steps(stage: Stage) -> None:
    marked = stage.send("DELETE", "/api/v1/namespaces/shop")
    assert (marked.code, marked.body["status"]) == (200, {"phase": "Terminating"})
    assert times(marked) == ("2026-01-01T00:00:00Z", None)
    assert stage.send("DELETE", "/api/v1/namespaces/shop").body == marked.body
    body = {**marked.body, "spec": {"finalizers": []}}
    finalized = stage.send("PUT", "/api/v1/namespaces/shop/finalize", body)
    assert (finalized.code, finalized.body.get("spec")) == (200, {})
    assert stage.send("GET", "/api/v1/namespaces/shop").code == 404


def test_protected_namespaces_are_kept(stage: Stage) -> None:
    stage.namespace("default")
    refused = stage.send("DELETE", "/api/v1/namespaces/default")
    assert (refused.code, refused.message) == (
        403,
        'namespaces "default" is forbidden: this namespace may not be deleted',
    )


def collection(stage: Stage) -> None:
    for number in range(5):
        metadata: dict[str, Any] = {"labels": {"k": str(number % 2)}}
        if number == 4:
            metadata["finalizers"] = ["a.b/c"]
        create(stage, MAPS, f"o{number}", metadata=metadata)


def names(response: Response) -> list[str]:
    assert response.code == 200, response.body
    return [item["metadata"]["name"] for item in response.body["items"]]


def test_a_deleted_collection_is_returned_as_it_was(stage: Stage) -> None:
    collection(stage)
    assert names(stage.send("DELETE", MAPS, query={"labelSelector": "k=1"})) == ["o1", "o3"]
    assert names(stage.send("GET", MAPS)) == ["o0", "o2", "o4"]
    deleted = stage.send("DELETE", MAPS)
    assert names(deleted) == ["o0", "o2", "o4"]
    assert not any("deletionTimestamp" in item["metadata"] for item in deleted.body["items"])
    assert names(stage.send("GET", MAPS)) == ["o4"]
    assert names(stage.send("DELETE", MAPS.replace("configmaps", "secrets"))) == []


def test_a_dry_run_or_a_refusal_keeps_the_collection(stage: Stage) -> None:
    collection(stage)
    head = stage.log.head()
    assert len(names(stage.send("DELETE", MAPS, query={"dryRun": "All"}))) == 5
    refused = stage.send("DELETE", MAPS, {"preconditions": {"uid": "x"}})
    assert (refused.code, refused.body["details"]["name"]) == (409, "o0")
    assert stage.send("DELETE", MAPS, query={"labelSelector": "a=b=c"}).code == 400
    assert stage.log.head() == head

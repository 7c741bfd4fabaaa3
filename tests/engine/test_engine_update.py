from __future__ import annotations

from typing import Any

import pytest

from tests.engine.stage import Response, Stage

MAPS = "/api/v1/namespaces/shop/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
PODS = "/api/v1/namespaces/shop/pods"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.namespace("shop")
    return stage


def put(stage: Stage, path: str, metadata: dict[str, Any], **rest: Any) -> Response:
    return stage.send("PUT", path, {"metadata": metadata, **rest})


def create(stage: Stage, path: str, metadata: dict[str, Any], **rest: Any) -> dict[str, Any]:
    response = stage.send("POST", path, {"metadata": metadata, **rest})
    assert response.code == 201, response.body
    created: dict[str, Any] = response.body
    return created


def test_an_update_keeps_system_fields(stage: Stage) -> None:
    before = create(stage, MAPS, {"name": "a", "labels": {"l": "1"}}, data={"k": "1"})
    stage.clock.step(60)
    metadata = {"name": "a", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 77}
    after = put(stage, f"{MAPS}/a", metadata, data={"k": "2"})
    assert after.code == 200
    assert after.body["data"] == {"k": "2"}
    kept = ("uid", "creationTimestamp", "namespace")
    assert {field: after.body["metadata"][field] for field in kept} == {
        field: before["metadata"][field] for field in kept
    }
    assert not after.body["metadata"].keys() & {"labels", "generation"}
    assert after.body["metadata"]["resourceVersion"] == "3"
    assert stage.send("GET", f"{MAPS}/a").body == after.body


def test_an_update_without_changes_is_not_written(stage: Stage) -> None:
    create(stage, MAPS, {"name": "a"}, data={"k": "1"})
    stage.clock.step(60)
    head = stage.log.head()
    same = put(stage, f"{MAPS}/a", {"name": "a"}, data={"k": "1"})
    assert (same.code, same.body["metadata"]["resourceVersion"]) == (200, "2")
    assert same.body["metadata"]["managedFields"][0]["time"] == "2026-01-01T00:00:00Z"
    assert stage.log.head() == head


@pytest.mark.parametrize(
    ("metadata", "code", "message"),
    [
        ({"name": "a", "resourceVersion": "1"}, 409, f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'),
        ({"name": "a", "resourceVersion": "99"}, 409, f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'),
        ({"name": "a", "resourceVersion": "abc"}, 500, 'strconv.ParseUint: parsing "abc": invalid syntax'),
        ({"name": "b"}, 400, "the name of the object (b) does not match the name on the URL (a)"),
        ({}, 400, "the name of the object (a based on URL) was undeterminable: name must be provided"),
        (
            {"name": "a", "namespace": "other"},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"name": "a", "uid": "other"},
            409,
            'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, '
            "Key: /configmaps/shop/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            "UID in precondition: other, UID in object meta: ",
        ),
    ],
)
def test_invalid_updates_are_refused(stage: Stage, metadata: dict[str, str], code: int, message: str) -> None:
    create(stage, MAPS, {"name": "a"})
    head = stage.log.head()
    refused = put(stage, f"{MAPS}/a", metadata, data={"k": "1"})
    assert refused.code == code
    assert refused.message.startswith(message)
    assert stage.log.head() == head


@pytest.mark.parametrize("version", ["2", "0", ""])
def test_a_given_resource_version_must_match(stage: Stage, version: str) -> None:
    create(stage, MAPS, {"name": "a"})
    assert put(stage, f"{MAPS}/a", {"name": "a", "resourceVersion": version}, data={"k": "1"}).code == 200


def test_a_kind_can_require_a_resource_version(stage: Stage) -> None:
    create(stage, LEASES, {"name": "a"})
    refused = put(stage, f"{LEASES}/a", {"name": "a"})
    assert refused.message == (
        'leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )
    patch = {"metadata": {"resourceVersion": None}, "spec": {"holderIdentity": "me"}}
    assert stage.send("PATCH", f"{LEASES}/a", patch, media_type="application/merge-patch+json").code == 422
    assert put(stage, f"{LEASES}/a", {"name": "a", "resourceVersion": "2"}, spec={"holderIdentity": "me"}).code == 200


def test_a_missing_object_is_created_if_its_kind_allows(stage: Stage) -> None:
    assert put(stage, f"{MAPS}/a", {"name": "a"}).message == 'configmaps "a" not found'
    created = put(stage, f"{LEASES}/a", {"name": "a"})
    assert (created.code, created.body["metadata"]["resourceVersion"]) == (201, "2")
    assert put(stage, f"{LEASES}/b", {"name": "b", "uid": "u"}).code == 409
    stale = put(stage, f"{LEASES}/c", {"name": "c", "resourceVersion": "1"})
    assert (stale.code, stale.body["metadata"]["resourceVersion"]) == (201, "3")
    missing = put(stage, f"{LEASES.replace('shop', 'none')}/a", {"name": "a"})
    assert missing.message == 'namespaces "none" not found'


def test_a_dry_run_returns_the_change_at_the_old_version(stage: Stage) -> None:
    create(stage, MAPS, {"name": "a"})
    head = stage.log.head()
    shown = stage.send("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "1"}}, query={"dryRun": "All"})
    assert (shown.body["data"], shown.body["metadata"]["resourceVersion"]) == ({"k": "1"}, "2")
    assert stage.log.head() == head


POD = {"containers": [{"name": "c", "image": "example.invalid/c:1"}], "nodeName": "n"}


def test_status_and_spec_are_written_separately(stage: Stage) -> None:
    path = "/api/v1/namespaces/shop/services"
    service: dict[str, Any] = {"spec": {"ports": [{"port": 80}]}, "status": {"conditions": [CONDITION]}}
    created = create(stage, path, {"name": "s"}, **service)
    assert created["status"] == {"loadBalancer": {}}
    changed = put(stage, f"{path}/s", {"name": "s"}, spec={**service["spec"], "sessionAffinity": "ClientIP"}, status={})
    assert (changed.body["status"], changed.body["spec"]["sessionAffinity"]) == ({"loadBalancer": {}}, "ClientIP")
    through_status = put(stage, f"{path}/s/status", {"name": "s", "labels": {"via": "status"}}, **service)
    assert through_status.code == 200, through_status.body
    assert through_status.body["status"]["conditions"] == [CONDITION]
    assert through_status.body["spec"]["sessionAffinity"] == "ClientIP"
    assert stage.send("GET", f"{path}/s/status").body == through_status.body


CONDITION = {
    "type": "Ready",
    "status": "True",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "R",
    "message": "m",
}


def test_generations_count_changes_of_the_spec(stage: Stage) -> None:
    path = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
    slice_: dict[str, Any] = {"addressType": "IPv4", "endpoints": [], "ports": []}
    assert create(stage, path, {"name": "e", "generation": 9}, **slice_)["metadata"]["generation"] == 1
    annotated = put(stage, f"{path}/e", {"name": "e", "annotations": {"a": "b"}}, **slice_)
    assert annotated.body["metadata"]["generation"] == 1
    slice_["endpoints"] = [{"addresses": ["10.0.0.1"]}]
    assert put(stage, f"{path}/e", {"name": "e"}, **slice_).body["metadata"]["generation"] == 2


def test_a_terminating_object_is_deleted_with_its_last_finalizer(stage: Stage) -> None:
    create(stage, MAPS, {"name": "a", "finalizers": ["a.b/c", "a.b/d"]})
    marked = stage.send("DELETE", f"{MAPS}/a").body["metadata"]
    one_left = put(stage, f"{MAPS}/a", {"name": "a", "finalizers": ["a.b/d"]})
    assert one_left.body["metadata"]["deletionTimestamp"] == marked["deletionTimestamp"]
    refused = put(stage, f"{MAPS}/a", {"name": "a", "finalizers": ["a.b/d", "a.b/e"]})
    assert refused.code == 422
    assert "no new finalizers can be added if the object is being deleted" in refused.message
    gone = put(stage, f"{MAPS}/a", {"name": "a"}, data={"k": "last"})
    assert (gone.code, gone.body["data"]) == (200, {"k": "last"})
    assert gone.body["metadata"]["resourceVersion"] == one_left.body["metadata"]["resourceVersion"]
    assert stage.send("GET", f"{MAPS}/a").code == 404
    (event,) = stage.log.events_after(4)
    assert (event.type.name, event.object.metadata.finalizers) == ("DELETED", ["a.b/d"])


def test_a_dry_run_keeps_a_terminating_object(stage: Stage) -> None:
    create(stage, MAPS, {"name": "a", "finalizers": ["a.b/c"]})
    stage.send("DELETE", f"{MAPS}/a")
    shown = stage.send("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}}, query={"dryRun": "All"})
    assert (shown.code, "finalizers" in shown.body["metadata"]) == (200, False)
    assert stage.send("GET", f"{MAPS}/a").code == 200


def test_a_service_deleted_by_an_update_releases_its_allocations(stage: Stage) -> None:
    path = "/api/v1/namespaces/shop/services"
    create(stage, path, {"name": "s", "finalizers": ["a.b/c"]}, spec={"ports": [{"port": 80}]})
    stage.send("DELETE", f"{path}/s")
    addresses = "/apis/networking.k8s.io/v1/ipaddresses"
    assert len(stage.send("GET", addresses).body["items"]) == 1
    change = {"metadata": {"finalizers": None}, "spec": {"type": "NodePort"}}
    assert stage.send("PATCH", f"{path}/s", change, media_type="application/merge-patch+json").code == 200
    assert stage.send("GET", f"{path}/s").code == 404
    assert stage.send("GET", addresses).body["items"] == []


def test_unknown_subresources_are_not_found_or_not_allowed(stage: Stage) -> None:
    create(stage, PODS, {"name": "p"}, spec=POD)
    for method in ("GET", "PUT", "PATCH"):
        refused = stage.send(method, f"{PODS}/p/nosub", {}, media_type="application/merge-patch+json")
        assert (refused.code, refused.message) == (404, "the server could not find the requested resource")
    assert stage.send("POST", f"{PODS}/p/status", {"metadata": {"name": "p"}}).code == 405
    assert stage.send("GET", f"{PODS}/p/exec").code == 404


def test_objects_of_a_deleted_kind_or_namespace_can_only_be_read_and_deleted(stage: Stage) -> None:
    create(stage, MAPS, {"name": "a"})
    stage.send("DELETE", "/api/v1/namespaces/shop")
    stage.send("PUT", "/api/v1/namespaces/shop/finalize", {"metadata": {"name": "shop"}})
    assert stage.send("GET", f"{MAPS}/a").code == 200
    assert put(stage, f"{MAPS}/a", {"name": "a"}, data={"k": "1"}).message == 'namespaces "shop" not found'
    assert stage.send("DELETE", f"{MAPS}/a").code == 200


@pytest.mark.parametrize("entries", [[], [{}]])
def test_a_client_can_clear_managed_fields(stage: Stage, entries: list[dict[str, Any]]) -> None:
    before = create(stage, MAPS, {"name": "a"}, data={"k": "1"})
    assert before["metadata"]["managedFields"]
    after = put(stage, f"{MAPS}/a", {"name": "a", "managedFields": entries}, data={"k": "1"})
    assert (after.code, after.body["metadata"].get("managedFields")) == (200, None)
    create(stage, MAPS, {"name": "b"}, data={"k": "1"})
    patched = stage.send(
        "PATCH", f"{MAPS}/b", {"metadata": {"managedFields": entries}}, media_type="application/merge-patch+json"
    )
    assert (patched.code, patched.body["metadata"].get("managedFields")) == (200, None)

"""Tests of conversion webhooks: the server converts objects when it returns, stores or compares them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.engine.calls.call import Call, Reply
from tests.controllers.customresourcedefinitions.defined import GROUP, NAME, DefinedStage, definition, version, widget
from tests.controllers.worked_stage import MERGE

V1 = f"/apis/{GROUP}/v1/namespaces/shop/widgets"
V2 = f"/apis/{GROUP}/v2/namespaces/shop/widgets"
APPLY = "application/apply-patch+yaml"
FAILED = f"conversion webhook for {GROUP}/v1, Kind=Widget "
HOOK: dict[str, Any] = {
    "strategy": "Webhook",
    "webhook": {"clientConfig": {"url": "https://hook.invalid/"}, "conversionReviewVersions": ["v1"]},
}


def _schema(field: str) -> dict[str, Any]:
    fields = {field: {"type": "integer"}, "keep": {"type": "string"}}
    return {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}}


class ConversionStage(DefinedStage):
    """A custom kind with `size` in v1, the stored version, and `width` in v2; `change` modifies the conversion
    webhook's responses.
    """

    def __init__(self, hook: dict[str, Any] = HOOK) -> None:
        super().__init__(self._converted)
        self.batches: list[int] = []
        self.change: Callable[[dict[str, Any]], Any] = lambda review: review
        versions = [
            version("v1", schema=_schema("size"), selectableFields=[{"jsonPath": ".spec.size"}]),
            version("v2", schema=_schema("width"), storage=False, selectableFields=[{"jsonPath": ".spec.width"}]),
        ]
        self.define({**definition(), "spec": {**definition(versions=versions)["spec"], "conversion": hook}})

    def _converted(self, call: Call) -> Reply:
        request = json.loads(call.body)["request"]
        self.batches.append(len(request["objects"]))
        objects = [_turned(each, request["desiredAPIVersion"]) for each in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        review = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response}
        changed = self.change(review)
        return changed if isinstance(changed, Reply) else Reply(200, "application/json", json.dumps(changed).encode())


def _turned(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    names = {"size": "width"} if api_version.endswith("v2") else {"width": "size"}
    spec = {names.get(name, name): value for name, value in (obj.get("spec") or {}).items()}
    return {**obj, "apiVersion": api_version, "spec": spec}


@pytest.fixture
def stage() -> ConversionStage:
    return ConversionStage()


def test_an_object_is_returned_in_the_requested_version_and_stored_in_the_storage_version(
    stage: ConversionStage,
) -> None:
    created = stage.send("POST", V2, widget(api_version=f"{GROUP}/v2", spec={"width": 2}))
    assert (created.code, created.body["apiVersion"], created.body["spec"]) == (201, f"{GROUP}/v2", {"width": 2})
    assert stage.send("GET", f"{V1}/a").body["spec"] == {"size": 2}
    assert stage.send("GET", f"{V2}/a").body["spec"] == {"width": 2}
    patched = stage.send("PATCH", f"{V2}/a", {"spec": {"width": 5}}, media_type=MERGE)
    assert (patched.body["spec"], patched.body["metadata"]["generation"]) == ({"width": 5}, 2)
    assert stage.send("GET", f"{V1}/a").body["spec"] == {"size": 5}


def test_a_hook_on_simulated_nodes_is_not_called_and_only_the_version_changes() -> None:
    client = {"service": {"namespace": "shop", "name": "hooks"}}
    stage = ConversionStage({"strategy": "Webhook", "webhook": {**HOOK["webhook"], "clientConfig": client}})
    stage.send("POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": {"simulate.ctrlmgr.io/node": "true"}}})
    service = {"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}], "clusterIP": "None"}}
    stage.send("POST", "/api/v1/namespaces/shop/services", service)
    refused = stage.send("POST", V2, widget(api_version=f"{GROUP}/v2", spec={"keep": "x"}))
    assert (refused.code, "no endpoints available" in refused.message) == (500, True)
    slice_ = {
        "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": 9443}],
        "endpoints": [{"addresses": ["192.0.2.1"], "nodeName": "n"}],
    }
    stage.send("POST", "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", slice_)
    created = stage.send("POST", V2, widget(api_version=f"{GROUP}/v2", spec={"keep": "x"}))
    assert (created.code, created.body["apiVersion"], created.body["spec"]) == (201, f"{GROUP}/v2", {"keep": "x"})
    read = stage.send("GET", f"{V1}/a").body
    assert (read["apiVersion"], read["spec"], stage.batches) == (f"{GROUP}/v1", {"keep": "x"}, [])


def test_requests_in_the_storage_version_call_no_hook(stage: ConversionStage) -> None:
    stage.send("POST", V1, widget(spec={"size": 1}))
    stage.send("GET", f"{V1}/a")
    stage.send("PATCH", f"{V1}/a", {"spec": {"size": 2}}, media_type=MERGE)
    stage.send("DELETE", f"{V1}/a")
    assert stage.batches == []


def test_a_list_is_converted_in_one_call(stage: ConversionStage) -> None:
    for index in range(5):
        stage.send("POST", V1, widget(f"w{index}", spec={"size": index}))
    listed = stage.send("GET", V2).body["items"]
    assert [each["spec"]["width"] for each in listed] == [0, 1, 2, 3, 4]
    stage.send("GET", V2)
    assert stage.batches == [5]
    selected = stage.send("GET", V2, query={"fieldSelector": "spec.width=3"}).body["items"]
    assert [each["metadata"]["name"] for each in selected] == ["w3"]


def test_each_get_calls_the_hook(stage: ConversionStage) -> None:
    stage.send("POST", V1, widget(spec={"size": 1}))
    assert stage.send("GET", f"{V2}/a").code == 200
    stage.change = lambda review: Reply(problem="connection refused")
    refused = stage.send("GET", f"{V2}/a")
    assert refused.code == 500
    assert refused.message == FAILED + 'failed: Post "https://hook.invalid/?timeout=30s": connection refused'
    assert stage.send("GET", f"{V1}/a").code == 200


def _with(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    def change(review: dict[str, Any]) -> Any:
        review["response"].update(changes)
        return review

    return change


def _object(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    def change(review: dict[str, Any]) -> Any:
        obj = review["response"]["convertedObjects"][0]
        for name, value in changes.items():
            (obj["metadata"] if name in ("name", "namespace", "uid", "labels") else obj)[name] = value
        return review

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_with(uid="other"), 'failed: expected response.uid="UID", got "other"'),
        (_with(convertedObjects=[]), "returned 0 objects, expected 1"),
        (_with(result={"status": "Failure", "message": "no"}), "failed: no"),
        (_with(result={"status": "Failure"}), "failed: response.result.status was 'Failure', not 'Success'"),
        (lambda review: {**review, "response": None}, "failed: no response provided"),
        (lambda review: Reply(200, "", b"nonsense"), "failed: invalid character"),
        (lambda review: Reply(200, "", b"[]"), "failed: json: cannot unmarshal array into Go value of type "),
        (lambda review: Reply(503), "failed: the server is currently unable to handle the request"),
        (_object(name="z"), "returned invalid object: must have the same name: a != z"),
        (_object(namespace="z"), "returned invalid object: must have the same namespace: shop != z"),
        (_object(kind="Z"), "returned invalid object at index 0: invalid kind (expected Widget, received Z)"),
        (_object(labels={"a": 1}), "returned invalid metadata: metadata.labels[a] must be a string, but is number"),
        (_object(labels="x"), "returned invalid metadata: invalid metadata.labels of type string"),
        (_object(labels={"b d": "x"}), 'returned invalid metadata: metadata.labels: Invalid value: "b d": name part'),
    ],
)
def test_an_invalid_response_is_reported(
    stage: ConversionStage, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    stage.send("POST", V1, widget(spec={"size": 1}))
    stage.change = change
    refused = stage.send("GET", f"{V2}/a")
    assert (refused.code, refused.body.get("reason")) == (500, None)
    head, _, tail = message.partition("UID")
    assert refused.message.startswith(FAILED + head)
    assert tail in refused.message


def test_a_write_fails_on_its_response_and_a_deletion_on_its_request(stage: ConversionStage) -> None:
    stage.send("POST", V1, widget(spec={"size": 1}))
    stage.change = _with(result={"status": "Failure", "message": "broken"})
    patched = stage.send("PATCH", f"{V2}/a", {"spec": {"width": 5}}, media_type=MERGE)
    assert patched.message == f"conversion webhook for {GROUP}/v2, Kind=Widget failed: broken"
    deleted = stage.send("DELETE", f"{V2}/a")
    assert deleted.message == FAILED + "failed: broken"
    assert stage.send("GET", f"{V1}/a").body["spec"] == {"size": 1}


def test_a_conversion_can_change_labels_but_no_other_metadata(stage: ConversionStage) -> None:
    stage.send("POST", V1, widget(spec={"size": 1}))
    before = stage.send("GET", f"{V1}/a").body["metadata"]

    def change(review: dict[str, Any]) -> Any:
        review["response"]["convertedObjects"][0]["metadata"].update(
            labels={"by": "hook"}, generation=99, finalizers=["x.io/y"]
        )
        return review

    stage.change = change
    assert stage.send("GET", f"{V2}/a").body["metadata"] == {**before, "labels": {"by": "hook"}}


def test_appliers_of_two_versions_share_equal_fields(stage: ConversionStage) -> None:
    def apply(path: str, spec: dict[str, Any], manager: str, **query: str) -> Any:
        body = {**widget("ap", api_version=f"{GROUP}/{'v2' if path == V2 else 'v1'}"), "spec": spec}
        return stage.send("PATCH", f"{path}/ap", body, query={"fieldManager": manager, **query}, media_type=APPLY)

    assert apply(V1, {"size": 1}, "ann").code == 201
    assert apply(V2, {"width": 1}, "bob").code == 200
    refused = apply(V2, {"width": 2}, "bob")
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == [".spec.size"]
    forced = apply(V2, {"width": 2}, "bob", force="true")
    assert [each["manager"] for each in forced.body["metadata"]["managedFields"]] == ["bob"]
    given_up = apply(V1, {}, "ann")
    assert given_up.body["spec"] == {"size": 2}
    gone = apply(V2, {}, "bob")
    assert gone.body["spec"] == {}


def test_unconvertible_instances_are_deleted_with_their_definition(stage: ConversionStage) -> None:
    stage.send("POST", V2, widget(api_version=f"{GROUP}/v2", spec={"width": 2}))
    stage.change = lambda review: Reply(problem="connection refused")
    stage.send("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}")
    stage.work()
    stage.pass_by(1)
    assert [obj.name for obj in stage.log.snapshot().objects if obj.resource.group == GROUP] == []

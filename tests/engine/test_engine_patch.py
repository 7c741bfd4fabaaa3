from __future__ import annotations

from typing import Any

import pytest

from tests.engine.stage import Response, Stage

MAPS = "/api/v1/namespaces/shop/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.namespace("shop")
    stage.send("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    return stage


def patch(stage: Stage, body: Any, media_type: str, path: str = f"{MAPS}/a", **query: str) -> Response:
    return stage.send("PATCH", path, body, media_type=media_type, query=query)


@pytest.mark.parametrize(
    ("media_type", "body", "data"),
    [
        (MERGE, {"data": {"k": None, "l": "2"}}, {"l": "2"}),
        (STRATEGIC, {"data": {"l": "2"}}, {"k": "1", "l": "2"}),
        (JSON, [{"op": "move", "from": "/data/k", "path": "/data/l"}], {"l": "1"}),
        (JSON, [{"op": "test", "path": "/metadata/resourceVersion", "value": "2"}], {"k": "1"}),
    ],
)
def test_each_patch_type_works(stage: Stage, media_type: str, body: Any, data: dict[str, str]) -> None:
    response = patch(stage, body, media_type)
    assert (response.code, response.body["data"]) == (200, data)
    assert stage.send("GET", f"{MAPS}/a").body == response.body


@pytest.mark.parametrize(
    ("media_type", "body", "code", "message"),
    [
        ("application/json", {}, 415, "415: Unsupported Media Type"),
        (MERGE, {"metadata": {"name": "b"}}, 400, "the name of the object (b) does not match the name on the URL (a)"),
        (MERGE, {"metadata": {"resourceVersion": "1"}}, 409, "Operation cannot be fulfilled on configmaps"),
        (
            MERGE,
            {"metadata": {"uid": "x"}},
            422,
            'ConfigMap "a" is invalid: metadata.uid: Invalid value: "x": field is',
        ),
        (MERGE, {"kind": "Secret"}, 422, ' "" is invalid: patch: Invalid value: "{'),
        (MERGE, {"data": {"k": 5}}, 422, ' "" is invalid: patch: Invalid value: "{'),
        (MERGE, b"{bad", 400, "error decoding patch: "),
        (STRATEGIC, b"{bad", 400, "invalid character 'b' looking for beginning of"),
        (JSON, b"{}", 400, "error decoding patch: json: cannot unmarshal object into Go value of type"),
        (
            JSON,
            [{"op": "test", "path": "/data/k", "value": "2"}],
            422,
            "the server rejected our request due to an error in our request",
        ),
    ],
)
def test_invalid_patches_are_refused(stage: Stage, media_type: str, body: Any, code: int, message: str) -> None:
    head = stage.log.head()
    refused = patch(stage, body, media_type)
    assert refused.code == code, refused.body
    assert refused.message.startswith(message)
    assert stage.log.head() == head


def test_a_patch_of_a_missing_object_is_not_found(stage: Stage) -> None:
    for media_type in (JSON, MERGE, STRATEGIC):
        assert patch(stage, b"{bad", media_type, f"{LEASES}/none").message == (
            'leases.coordination.k8s.io "none" not found'
        )


@pytest.mark.parametrize(
    ("media_type", "body", "problem"),
    [
        (MERGE, b'{"bogus":1}', 'unknown field "bogus"'),
        (STRATEGIC, b'{"bogus":1}', 'unknown field "bogus"'),
        (MERGE, b'{"data":{"x":"1","x":"2"}}', 'duplicate field "data.x"'),
        (STRATEGIC, b'{"data":{"x":"1","x":"2"}}', 'duplicate field "data.x"'),
        (
            JSON,
            b'[{"op":"add","path":"/data/x","value":"1","bogus":1}]',
            'json patch unknown field "[0].bogus"',
        ),
        (
            JSON,
            b'[{"op":"add","path":"/data/x","path":"/data/x","value":"1"}]',
            'json patch duplicate field "[0].path"',
        ),
    ],
)
def test_unknown_parts_are_handled_by_field_validation(
    stage: Stage, media_type: str, body: bytes, problem: str
) -> None:
    warned = patch(stage, body, media_type, dryRun="All")
    assert (warned.code, list(warned.warnings)) == (200, [problem])
    ignored = patch(stage, body, media_type, dryRun="All", fieldValidation="Ignore")
    assert (ignored.code, list(ignored.warnings)) == (200, [])
    refused = patch(stage, body, media_type, dryRun="All", fieldValidation="Strict")
    assert refused.code == 422
    assert refused.message.endswith(f"strict decoding error: {problem}")
    (cause,) = refused.body["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("patch", "FieldValueInvalid")


def applied(stage: Stage, data: dict[str, str], manager: str, *, name: str = "b", **query: str) -> Response:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return patch(stage, body, APPLY, f"{MAPS}/b", fieldManager=manager, **query)


def test_an_apply_creates_changes_conflicts_and_forces(stage: Stage) -> None:
    created = applied(stage, {"x": "1", "y": "1"}, "alice")
    assert (created.code, created.body["metadata"]["managedFields"][0]["operation"]) == (201, "Apply")
    assert created.body["metadata"]["uid"]
    again = applied(stage, {"x": "1", "y": "1"}, "alice")
    assert (again.code, again.body) == (200, created.body)
    removed = applied(stage, {"x": "2"}, "alice")
    assert removed.body["data"] == {"x": "2"}
    refused = applied(stage, {"x": "3"}, "bob")
    assert (refused.code, refused.message) == (
        409,
        'Apply failed with 1 conflict: conflict with "alice": .data.x',
    )
    assert applied(stage, {"x": "3"}, "bob", force="true").body["data"] == {"x": "3"}
    other_name = applied(stage, {}, "bob", name="c")
    assert other_name.message == "the name of the object (c) does not match the name on the URL (b)"


def test_an_apply_is_yaml_with_optional_strictness(stage: Stage) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {x: one, x: two}\n"
    warned = patch(stage, text, APPLY, f"{MAPS}/b", fieldManager="me", dryRun="All")
    assert (warned.code, warned.body["data"]) == (201, {"x": "two"})
    assert 'key "x" already set in map' in warned.warnings[0]
    refused = patch(stage, text, APPLY, f"{MAPS}/b", fieldManager="me", fieldValidation="Strict")
    assert refused.code == 400
    assert refused.message.startswith("error strict decoding YAML: ")
    assert patch(stage, b"a: [", APPLY, f"{MAPS}/b", fieldManager="me").code == 400
    assert patch(stage, b"[]", APPLY, f"{MAPS}/b", fieldManager="me").code == 400


def test_an_apply_with_a_uid_creates_nothing(stage: Stage) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "uid": "u"}}
    refused = patch(stage, body, APPLY, f"{MAPS}/b", fieldManager="me")
    assert refused.message == (
        'Operation cannot be fulfilled on configmaps "b": uid mismatch: the provided object specified uid u, '
        "and no existing object was found"
    )


def test_a_patch_of_the_status_changes_only_the_status(stage: Stage) -> None:
    path = "/api/v1/namespaces/shop"
    refused = patch(stage, {}, APPLY, f"{path}/services/none/status", fieldManager="me")
    assert refused.code == 404
    response = patch(stage, {"spec": {"finalizers": []}, "status": {}}, MERGE, "/api/v1/namespaces/shop/status")
    assert (response.code, response.body["spec"]) == (200, {"finalizers": ["kubernetes"]})


def test_a_patch_of_another_version_uses_that_version(stage: Stage) -> None:
    events = "/apis/events.k8s.io/v1/namespaces/shop/events"
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "namespace": "shop", "name": "web"},
        "reason": "R",
        "action": "A",
        "type": "Normal",
        "reportingController": "c.d/e",
        "reportingInstance": "i",
        "note": "first",
    }
    created = stage.send("POST", events, event)
    assert created.code == 201, created.body
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    changed = patch(stage, series, MERGE, f"{events}/e")
    assert (changed.code, changed.body["note"], changed.body["series"]["count"]) == (200, "first", 2)
    core = stage.send("GET", "/api/v1/namespaces/shop/events/e").body
    assert (core["message"], core["involvedObject"]["name"], core["series"]["count"]) == ("first", "web", 2)
    assert core["metadata"]["resourceVersion"] == changed.body["metadata"]["resourceVersion"]

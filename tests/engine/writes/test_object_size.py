"""Tests of objects that are too large to be stored, and of stored objects that exceed the limit."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.engine.writes import object_size
from ctrlmgr.eventlog.event import Author, EventType, Proposal
from ctrlmgr.server.request import BODY_LIMIT
from tests.engine.stage import Stage

LIMIT, ROOM = 4096, 512
DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"
MAPS = "/api/v1/namespaces/shop/configmaps"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(object_size, "MOST_STORED", LIMIT)
    monkeypatch.setattr(object_size, "_ROOM", ROOM)
    stage = Stage()
    stage.namespace("shop")
    return stage


def of(size: int, **metadata: Any) -> dict[str, Any]:
    named = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return {**named, "data": {"k": "x" * size}}


def stored(stage: Stage, path: str = f"{MAPS}/a") -> dict[str, Any]:
    found: dict[str, Any] = stage.send("GET", path).body
    return found


def kept(stage: Stage) -> Object:
    """Return the object as it is stored."""
    return next(each for each in stage.log.snapshot().objects if each.name == "a")


def grow(stage: Stage, **metadata: Any) -> None:
    """Append an object that exceeds the size limit, as an import can."""
    assert stage.send("POST", MAPS, of(1, **metadata)).code == 201
    current = kept(stage)
    larger = Object(current.resource, current.body.replace(b'"k":"x"', b'"k":"%b"' % (b"x" * 2 * LIMIT)))
    stage.log.append([Proposal(EventType.MODIFIED, larger, current.revision)], author=Author("import"))


def test_the_limit_equals_the_size_of_a_request() -> None:
    assert object_size.MOST_STORED == BODY_LIMIT


def test_a_too_large_object_is_not_created(stage: Stage) -> None:
    head = stage.log.head()
    answer = stage.send("POST", MAPS, of(LIMIT))
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
    assert f"limit is {LIMIT}" in answer.message
    assert stage.log.head() == head


def test_defaults_count_toward_the_size(stage: Stage) -> None:
    containers = [{"name": f"c{number}", "image": "i"} for number in range(30)]
    labels = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    body = {"metadata": {"name": "a"}, "spec": {"selector": labels, "template": template}}
    assert len(str(body)) < LIMIT
    assert stage.send("POST", DEPLOYMENTS, body).code == 413


@pytest.mark.parametrize(
    ("method", "body", "media_type"),
    [
        ("PUT", of(LIMIT), "application/json"),
        ("PATCH", [{"op": "copy", "from": "/data/k", "path": f"/data/{name}"} for name in "bcdefgh"], JSON_PATCH),
        ("PATCH", {"data": {"b": "x" * LIMIT}}, MERGE_PATCH),
        ("PATCH", of(LIMIT), APPLY),
    ],
)
def test_an_update_cannot_make_an_object_too_large(stage: Stage, method: str, body: Any, media_type: str) -> None:
    assert stage.send("POST", MAPS, of(1000)).code == 201
    before = stored(stage)
    query = {"force": "true", "fieldManager": "m"} if media_type == APPLY else {}
    assert stage.send(method, f"{MAPS}/a", body, media_type=media_type, query=query).code == 413
    assert stored(stage) == before


def test_a_too_large_object_can_shrink_but_not_grow(stage: Stage) -> None:
    grow(stage, labels={"l": "1"})
    larger = {"metadata": {"labels": {"m": "1"}}}
    assert stage.send("PATCH", f"{MAPS}/a", larger, media_type=MERGE_PATCH).code == 413
    as_large = [{"op": "replace", "path": "/metadata/labels/l", "value": "2"}]
    assert stage.send("PATCH", f"{MAPS}/a", as_large, media_type=JSON_PATCH).code == 200
    smaller = [{"op": "replace", "path": "/data/k", "value": "x" * (LIMIT + 1)}]
    assert stage.send("PATCH", f"{MAPS}/a", smaller, media_type=JSON_PATCH).code == 200
    assert stage.send("PUT", f"{MAPS}/a", of(1)).code == 200


def test_a_too_large_object_can_be_deleted(stage: Stage) -> None:
    grow(stage, finalizers=["example.com/a"])
    assert stage.send("DELETE", f"{MAPS}/a").code == 200
    assert stored(stage)["metadata"]["deletionTimestamp"]
    released = [{"op": "remove", "path": "/metadata/finalizers"}]
    assert stage.send("PATCH", f"{MAPS}/a", released, media_type=JSON_PATCH).code == 200
    assert stage.send("GET", f"{MAPS}/a").code == 404


def test_a_status_can_be_written_to_an_object_of_the_maximum_size(stage: Stage) -> None:
    labels = {"matchLabels": {"a": "b"}}
    pod = {"containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {"note": ""}}, "spec": pod}
    body = {"metadata": {"name": "a"}, "spec": {"selector": labels, "template": template}}
    assert stage.send("POST", DEPLOYMENTS, body).code == 201
    note = "x" * (LIMIT - len(kept(stage).body))
    change = {"spec": {"template": {"metadata": {"annotations": {"note": note[200:]}}}}}
    assert stage.send("PATCH", f"{DEPLOYMENTS}/a", change, media_type=MERGE_PATCH).code == 200
    label = {"metadata": {"labels": {"l" * number: "x" * 60 for number in (1, 2, 3)}}}
    assert stage.send("PATCH", f"{DEPLOYMENTS}/a", label, media_type=MERGE_PATCH).code == 413
    status: dict[str, Any] = {"status": {"replicas": 1, "observedGeneration": 1}}
    assert stage.send("PATCH", f"{DEPLOYMENTS}/a/status", status, media_type=MERGE_PATCH).code == 200
    status["status"]["conditions"] = [{"type": "A", "status": "True", "message": "x" * ROOM}]
    assert stage.send("PATCH", f"{DEPLOYMENTS}/a/status", status, media_type=MERGE_PATCH).code == 413

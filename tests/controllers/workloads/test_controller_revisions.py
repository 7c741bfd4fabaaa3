"""Tests of the data in a ControllerRevision: kube-controller-manager would write the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.workloads.controller_ref_manager import Owner
from ctrlmgr.controllers.workloads.controller_revisions import NewRevision, patch_bytes, renumbered, template_patch
from tests.controllers.workloads.makers import daemon_sets, stateful_sets
from tests.controllers.workloads.stage import WorkloadStage, template

REVISIONS = "apps/v1/controllerrevisions"
APPLY, JSON_PATCH = "application/apply-patch+yaml", "application/json-patch+json"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
LABELS = {"app": "db"}


def owner() -> Owner:
    metadata = {"name": "db", "namespace": "shop", "uid": "u"}
    return Owner(
        Object.from_dict({"kind": "StatefulSet", "apiVersion": "apps/v1", "metadata": metadata}),
        "apps/v1",
        "StatefulSet",
    )


def data_in(obj: Object) -> bytes:
    return obj.body.partition(b'"data":')[2].partition(b',"revision"')[0]


def test_keys_are_sorted_on_every_level_and_markup_is_escaped() -> None:
    data = template_patch({"spec": {"b": "<&>", "a": [{"d": 1, "c": 2}]}, "metadata": {}})
    made = NewRevision(owner(), 1, data, {}, {}, "hash").named("x")
    spec = b'{"a":[{"c":2,"d":1}],"b":"\\u003c\\u0026\\u003e"}'
    assert data_in(made) == b'{"spec":{"template":{"$patch":"replace","metadata":{},"spec":' + spec + b"}}}"


def test_a_large_number_is_formatted_like_go() -> None:
    numbers = [2**53, 2**53 + 1, 2**63 - 1, -(2**63 - 1)]
    wanted = [9007199254740992, 9007199254740992, 9223372036854776000, -9223372036854776000]
    assert json.loads(patch_bytes({"a": numbers})) == {"a": wanted}


def test_another_revision_number_keeps_the_bytes_of_the_data() -> None:
    stored = Object.from_wire(
        b'{"kind":"ControllerRevision","apiVersion":"apps/v1","metadata":{"name":"a","resourceVersion":"7"},'
        b'"data":{"z":"\\u003c","a":1.0},"revision":1}'
    )
    changed = renumbered(stored, 2)
    assert data_in(changed) == b'{"z":"\\u003c","a":1.0}'
    assert (changed.revision, changed.to_dict()["revision"]) == (7, 2)


@pytest.mark.parametrize(("kind", "maker"), [("StatefulSet", stateful_sets), ("DaemonSet", daemon_sets)])
def test_the_stored_data_equals_the_clients_computation(kind: str, maker: Any) -> None:
    stage = WorkloadStage(maker)
    spec = {"selector": {"matchLabels": LABELS}, "template": template(LABELS, "registry.example/app:<1>")}
    sets = f"apps/v1/{kind.lower()}s"
    stage.create(sets, {"kind": kind, "apiVersion": "apps/v1", "metadata": {"name": "db"}, "spec": spec})
    stage.work()
    (revision,) = stage.all(REVISIONS)
    wanted = {"spec": {"template": {**stage.get(sets, "db")["spec"]["template"], "$patch": "replace"}}}
    assert json.dumps(revision["data"]) == json.dumps(wanted, sort_keys=True)
    # An adoption is a strategic merge patch: it must not change the data, which is immutable.
    patch: dict[str, Any] = {"metadata": {"ownerReferences": []}}
    answer = stage.send("PATCH", stage.path(REVISIONS, revision["metadata"]["name"]), patch, media_type=STRATEGIC)
    assert answer.code == 200, answer.body


def revision(name: str, data: Any) -> dict[str, Any]:
    head = {"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": {"name": name}}
    return {**head, "data": data, "revision": 1}


LABELLED = {"metadata": {"labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (STRATEGIC, LABELLED),
        (APPLY, {"kind": "ControllerRevision", "apiVersion": "apps/v1", **LABELLED}),
    ],
)
def test_a_strategic_patch_sorts_the_data_and_can_change_an_immutable_field(media_type: str, body: Any) -> None:
    stage = WorkloadStage()
    stage.create(REVISIONS, revision("unsorted", {"b": 1, "a": {"d": 1, "c": [2]}}))
    stage.create(REVISIONS, revision("sorted", {"a": {"c": [2], "d": 1}, "b": 1}))
    answer = stage.send(
        "PATCH", stage.path(REVISIONS, "unsorted"), body, media_type=media_type, query={"fieldManager": "me"}
    )
    assert answer.code == 422
    assert [each["field"] for each in answer.body["details"]["causes"]] == ["data"]
    assert "field is immutable" in answer.body["message"]
    answer = stage.send(
        "PATCH", stage.path(REVISIONS, "sorted"), body, media_type=media_type, query={"fieldManager": "me"}
    )
    assert answer.code == 200, answer.body


@pytest.mark.parametrize(
    ("media_type", "body"),
    [(MERGE, LABELLED), (JSON_PATCH, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}])],
)
def test_a_json_patch_keeps_the_order_of_the_data(media_type: str, body: Any) -> None:
    stage = WorkloadStage()
    stage.create(REVISIONS, revision("unsorted", {"b": 1, "a": 2}))
    answer = stage.send("PATCH", stage.path(REVISIONS, "unsorted"), body, media_type=media_type)
    assert answer.code == 200, answer.body
    assert list(answer.body["data"]) == ["b", "a"]


def test_an_update_cannot_reorder_the_data() -> None:
    stage = WorkloadStage()
    stage.create(REVISIONS, revision("unsorted", {"b": 1, "a": 2}))
    path = stage.path(REVISIONS, "unsorted")
    assert stage.send("PUT", path, revision("unsorted", {"a": 2, "b": 1})).code == 422
    assert stage.send("PUT", path, {**revision("unsorted", {"b": 1, "a": 2}), "revision": 2}).code == 200

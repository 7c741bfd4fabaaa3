"""Tests of the migration from client-side to server-side apply with kubectl, and back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctrlmgr.engine.managedfields.last_applied import LAST_APPLIED
from ctrlmgr.errors import ApplyConflict
from tests.engine.managedfields.stored import StoredObject


def applied_by_client(data: dict[str, str], **other: Any) -> StoredObject:
    """Return an object that `kubectl apply` created with client-side apply."""
    stored = StoredObject()
    configuration = msgspec.json.encode(stored.body(data=data)).decode()
    annotations = {LAST_APPLIED: configuration, **other}
    stored.update("kubectl-client-side-apply", stored.body(data=data, metadata={"annotations": annotations}))
    return stored


def annotation(stored: StoredObject) -> Any:
    return stored["metadata"].get("annotations", {}).get(LAST_APPLIED)


def test_a_field_in_last_applied_is_no_conflict_for_kubectl() -> None:
    stored = applied_by_client({"a": "1", "b": "1"})
    stored.apply("kubectl", data={"a": "2"})
    assert stored["data"] == {"a": "2", "b": "1"}
    assert annotation(stored) == '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"one"}}\n'


def test_a_field_in_last_applied_is_a_conflict_for_other_managers() -> None:
    with pytest.raises(ApplyConflict):
        applied_by_client({"a": "1"}).apply("alice", data={"a": "2"})


def test_a_field_changed_since_is_a_conflict_for_kubectl() -> None:
    stored = applied_by_client({"a": "1", "b": "1", "c": "1"})
    stored.merge("someone", data={"b": "2"})
    with pytest.raises(ApplyConflict) as conflict:
        stored.apply("kubectl", data={"a": "3", "b": "3"})
    assert str(conflict.value) == 'Apply failed with 1 conflict: conflict with "someone" using v1: .data.b'


@pytest.mark.parametrize(
    "configuration",
    [
        None,
        "",
        "{",
        "[]",
        '{"apiVersion":"v2","data":{"a":"1"}}',
        '{"apiVersion":"v1","data":{"a":1}}',
        '{"apiVersion":"v1","metadata":{"name":"one"}}',
    ],
)
def test_an_annotation_without_the_field_does_not_prevent_a_conflict(configuration: str | None) -> None:
    stored = StoredObject()
    annotations = {} if configuration is None else {LAST_APPLIED: configuration}
    stored.update("someone", stored.body(data={"a": "1"}, metadata={"annotations": annotations}))
    with pytest.raises(ApplyConflict):
        stored.apply("kubectl", data={"a": "2"})


def test_the_annotation_excludes_itself_and_has_gos_json() -> None:
    stored = applied_by_client({"a": "1"}, other="x")
    stored.apply(
        "kubectl", data={"a": "1"}, metadata={"annotations": {"mine": "<&>", LAST_APPLIED: "whatever"}}, force=True
    )
    shown = '"metadata":{"annotations":{"mine":"\\u003c\\u0026\\u003e"},"name":"one"}'
    assert annotation(stored) == f'{{"apiVersion":"v1","data":{{"a":"1"}},"kind":"ConfigMap",{shown}}}\n'
    assert stored["metadata"]["annotations"]["other"] == "x"


def test_a_missing_annotation_is_not_created() -> None:
    stored = StoredObject()
    stored.apply("kubectl", data={"a": "1"})
    assert annotation(stored) is None


def test_a_too_large_annotation_is_removed() -> None:
    stored = applied_by_client({"a": "1"})
    stored.apply("kubectl", data={"a": "x" * 262144})
    assert annotation(stored) is None
    assert len(stored["data"]["a"]) == 262144

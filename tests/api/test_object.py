"""Tests of the two forms of an object: the form in which it is stored, and the form in which it is sent to clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource

THINGS = Resource("", "things")
OWNER = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "owner-uid"}


def body(**metadata: Any) -> bytes:
    fields = {"kind": "Thing", "apiVersion": "v1", "metadata": metadata, "spec": {"uid": "x"}}
    return json.dumps(fields, separators=(",", ":")).encode()


METADATA: dict[str, dict[str, Any]] = {
    "plain": {"name": "a", "namespace": "n", "uid": "u-1", "labels": {"uid": "no"}},
    "generated": {"name": "a-x", "generateName": "a-", "namespace": "n", "uid": "u-1"},
    "owned": {"name": "a", "uid": "u-1", "ownerReferences": [OWNER]},
    "braces in its name": {"name": 'system:{"uid":"z"}', "uid": "u-1"},
    "nothing but a uid": {"uid": "u-1"},
}


@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
def test_the_revision_is_inserted_after_the_uid(metadata: dict[str, Any]) -> None:
    obj = Object(THINGS, body(**metadata), 42)
    wire = json.loads(obj.wire())
    assert list(wire["metadata"]) == _with_version(list(metadata))
    assert wire["metadata"].pop("resourceVersion") == "42"
    assert wire["metadata"] == metadata
    assert wire["spec"] == {"uid": "x"}


def _with_version(fields: list[str]) -> list[str]:
    at = fields.index("uid") + 1
    return [*fields[:at], "resourceVersion", *fields[at:]]


@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
def test_a_spliced_body_decodes_to_the_same_object(metadata: dict[str, Any]) -> None:
    """After an object was sent, only one of its two forms stays in memory, which callers cannot notice."""
    stored = body(**metadata)
    obj = Object(THINGS, stored, 42)
    first = obj.wire()
    assert obj.wire() == first
    assert obj.body == stored
    assert obj.at(43).body == stored
    assert obj.at(43).wire() == first.replace(b'"42"', b'"43"')
    assert obj == Object(THINGS, stored, 42)
    assert hash(obj) == hash(Object(THINGS, stored, 42))
    assert obj.metadata.resource_version == ""
    assert obj.metadata.uid == "u-1"


def test_an_owners_uid_is_not_mistaken_for_the_objects_uid() -> None:
    obj = Object(THINGS, body(name="a", ownerReferences=[OWNER]), 7)
    wire = json.loads(obj.wire())
    assert wire["metadata"]["resourceVersion"] == "7"
    assert wire["metadata"]["ownerReferences"] == [OWNER]
    assert obj.body == body(name="a", ownerReferences=[OWNER])


def test_an_unstored_object_has_no_version() -> None:
    obj = Object(THINGS, body(name="a", uid="u-1"))
    assert obj.wire() == obj.body == body(name="a", uid="u-1")


@pytest.mark.parametrize("version", ["", "abc", "-1", "1.5", "٣", "9" * 20, "9" * 5000])
def test_an_invalid_resource_version_counts_as_none(version: str) -> None:
    fields = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "resourceVersion": version}}
    assert Object.from_wire(json.dumps(fields).encode()).revision == 0


def test_a_top_level_field_is_replaced_in_place() -> None:
    obj = Object(THINGS, body(name="a", uid="u-1"), 42)
    changed = obj.with_field("spec", {"size": 1})
    assert changed.body == body(name="a", uid="u-1").replace(b'{"uid":"x"}', b'{"size":1}')
    assert (changed.revision, changed.key, changed.uid) == (42, obj.key, "u-1")
    assert list(json.loads(changed.with_field("status", {}).body)) == [
        "kind",
        "apiVersion",
        "metadata",
        "spec",
        "status",
    ]

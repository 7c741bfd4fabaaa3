"""Tests of field ownership for schemas that no built-in kind, or only few built-in kinds, have."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.engine.managedfields import FieldManager
from ctrlmgr.engine.managedfields.field_set import FieldSet, in_order
from ctrlmgr.engine.managedfields.merge_type import MergeType
from ctrlmgr.engine.managedfields.schema_merge_types import merge_type_of
from ctrlmgr.schema.definitions import Definitions
from tests.engine.managedfields.stored import APPS, StoredObject

CUSTOM = Definitions.builtin().node(
    {
        "type": "object",
        "properties": {
            "any": {},
            "free": {"type": "object"},
            "text": {"type": "string", "default": "x"},
            "maps": {
                "type": "object",
                "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}},
            },
            "whole": {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-map-type": "atomic"},
            "keyed": {
                "type": "array",
                "items": {"type": "object", "properties": {"k": {"type": "string", "default": "d"}, "v": {}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            "merged": {
                "type": "array",
                "items": {"type": "object", "properties": {"k": {"type": "string"}}},
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "k",
            },
            "united": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
            "listed": {"type": "array", "items": {"type": "string"}},
        },
    }
)
MERGE_TYPE: MergeType = merge_type_of(CUSTOM)


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        ({}, {"any": 1}, {"f:any": {}}, None, None),
        ({}, {"any": {"a": {"b": 1}}}, {"f:any": {".": {}, "f:a": {".": {}, "f:b": {}}}}, None, None),
        ({"any": {"a": 1}}, {"any": {"a": 2, "b": [1]}}, {"f:any": {"f:b": {}}}, {"f:any": {"f:a": {}}}, None),
        ({"any": 1}, {"any": {"a": 1}}, {"f:any": {"f:a": {}}}, {"f:any": {}}, None),
        ({"any": {"a": 1}}, {"any": [1]}, None, {"f:any": {}}, {"f:any": {"f:a": {}}}),
        ({"any": {"a": 1}}, {"any": {}}, None, None, {"f:any": {"f:a": {}}}),
        ({"any": 1}, {"any": {}}, None, {"f:any": {}}, None),
        ({"any": [1]}, {"any": [2]}, None, {"f:any": {}}, None),
        ({"free": {"a": None}}, {"free": {"a": 1}}, None, {"f:free": {"f:a": {}}}, None),
        ({"free": {}}, {"free": None}, None, {"f:free": {}}, None),
        ({"maps": {"x": {"a": "1"}}}, {"maps": {"x": {"a": "2"}}}, None, {"f:maps": {"f:x": {"f:a": {}}}}, None),
        ({"maps": {"x": {"a": "1"}}}, {"maps": {}}, None, None, {"f:maps": {"f:x": {".": {}, "f:a": {}}}}),
        ({}, {"maps": {}}, {"f:maps": {}}, None, None),
        ({"maps": {"x": {}}}, {"maps": {"x": None}}, None, {"f:maps": {"f:x": {}}}, None),
        ({}, {"keyed": []}, {"f:keyed": {}}, None, None),
        ({"maps": None}, {"maps": {}}, None, {"f:maps": {}}, None),
        ({"whole": {"a": "1"}}, {"whole": {"a": "2"}}, None, {"f:whole": {}}, None),
        ({"keyed": [{"v": 1}]}, {"keyed": [{"k": "d", "v": 1}]}, {"f:keyed": {'k:{"k":"d"}': {"f:k": {}}}}, None, None),
        ({"merged": []}, {"merged": [{"k": "a"}]}, {"f:merged": {'k:{"k":"a"}': {".": {}, "f:k": {}}}}, None, None),
        ({"merged": []}, {"merged": None}, None, {"f:merged": {}}, None),
        ({"united": ["a"]}, {"united": ["c"]}, {"f:united": {'v:"c"': {}}}, None, {"f:united": {'v:"a"': {}}}),
        ({"united": ["a", "b"]}, {"united": ["b", "a"]}, None, None, None),
        ({"listed": ["a", "b"]}, {"listed": ["b", "a"]}, None, {"f:listed": {}}, None),
        ({"text": "a", "odd": 1}, {"odd": 2}, None, None, {"f:text": {}}),
    ],
)  # fmt: skip
def test_a_change_returns_its_changed_fields(old: Any, new: Any, added: Any, modified: Any, removed: Any) -> None:
    assert MERGE_TYPE.compare(old, new) == (added, modified, removed)


NAMES = st.sampled_from(["a", "b", "B", "é", 'q"', "<", "10", "9", "."])
VALUES = st.recursive(st.none() | st.integers(0, 2) | NAMES, lambda each: st.dictionaries(NAMES, each, max_size=3))
CUSTOMS = st.fixed_dictionaries(
    {},
    optional={
        "any": VALUES,
        "free": st.dictionaries(NAMES, VALUES, max_size=3),
        "maps": st.dictionaries(NAMES, st.dictionaries(st.just("a"), NAMES), max_size=3),
        "keyed": st.lists(st.dictionaries(st.sampled_from("kv"), NAMES), max_size=3),
        "merged": st.lists(st.builds(lambda name: {"k": name}, NAMES), max_size=3),
        "united": st.lists(NAMES, max_size=3),
        "listed": st.lists(NAMES, max_size=2),
    },
)


@settings(deadline=None)
@given(CUSTOMS, CUSTOMS)
def test_changed_fields_are_sorted(old: Any, new: Any) -> None:
    for part in MERGE_TYPE.compare(old, new)[:2]:
        fields = part or {}
        assert msgspec.json.encode(fields) == msgspec.json.encode(in_order(fields))


@pytest.mark.parametrize(
    ("value", "owned"),
    [
        ({"any": {"a": 1, "b": {}}}, {"f:any": {"f:a": {}, "f:b": {}}}),
        ({"any": None, "free": {}}, {"f:any": {}, "f:free": {}}),
        ({"maps": {"x": {"a": "1"}, "y": None}}, {"f:maps": {"f:x": {".": {}, "f:a": {}}, "f:y": {}}}),
        ({"keyed": [{"v": {"a": 1}}, {}]}, {"f:keyed": {'k:{"k":"d"}': {}}}),
        ({"keyed": [{"v": {"a": 1}}]}, {"f:keyed": {'k:{"k":"d"}': {".": {}, "f:v": {"f:a": {}}}}}),
        ({"keyed": [], "whole": None, "text": None}, {"f:whole": {}, "f:text": {}}),
    ],
)
def test_an_applier_owns_its_fields(value: Any, owned: Any) -> None:
    assert MERGE_TYPE.owned(value) == owned


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        ({"any": {"a": 1}}, {"any": {"b": 2}}, {"any": {"a": 1, "b": 2}}),
        ({"any": {"a": 1}}, {"any": [2]}, {"any": [2]}),
        ({"whole": {"a": "1"}}, {"whole": {}}, {"whole": {}}),
        ({"maps": {"x": {"a": "1"}}}, {"maps": None}, {"maps": {"x": {"a": "1"}}}),
        ({"keyed": [{"v": 1}, {"v": 2}]}, {"keyed": [{"k": "d", "v": 3}]}, {"keyed": [{"k": "d", "v": 3}]}),
        ({"keyed": [{"v": 1}]}, {"keyed": []}, {"keyed": [{"v": 1}]}),
        ({"odd": 1}, {"odd": 2}, {"odd": 2}),
    ],
)
def test_an_apply_merges_a_value(old: Any, new: Any, merged: Any) -> None:
    assert MERGE_TYPE.merge(old, new) == merged


@pytest.mark.parametrize(
    ("value", "fields", "left"),
    [
        ({"any": {"a": {"b": 1}, "c": 1}}, {"f:any": {"f:a": {"f:b": {}}}}, {"any": {"a": None, "c": 1}}),
        ({"any": [1]}, {"f:any": {"i:0": {}}}, {"any": None}),
        ({"keyed": [{"k": "a"}, {"k": "b"}]}, {"f:keyed": {'k:{"k":"a"}': {}}}, {"keyed": [{"k": "b"}]}),
        ({"keyed": [{"k": "a"}]}, {"f:keyed": {'k:{"k":"a"}': {}}}, {"keyed": None}),
        ({"united": ["a", "b"]}, {"f:united": {'v:"a"': {}}}, {"united": ["b"]}),
        ({"text": "a", "odd": {"x": 1}}, {"f:text": {"f:b": {}}, "f:odd": {"f:x": {}}}, {"text": "a", "odd": {"x": 1}}),
        ({"text": "a"}, {"f:text": {}}, None),
        ({"maps": 1, "keyed": 1}, {"f:maps": {"f:a": {}}, "f:keyed": {"f:b": {}}}, {"maps": None, "keyed": None}),
    ],
)
def test_removing_fields_keeps_the_others(value: Any, fields: Any, left: Any) -> None:
    assert MERGE_TYPE.remove(value, fields) == left


def test_a_value_without_a_schema_can_have_any_type() -> None:
    anything = {
        "any": {"a": [{}, None, 1]},
        "free": {"b": [1]},
        "text": None,
        "keyed": None,
        "listed": None,
        "maps": None,
    }
    assert not list(MERGE_TYPE.check(anything, ""))
    assert list(MERGE_TYPE.check({"whole": {"b": 1}}, "")) == [".whole.b: field not declared in schema"]
    assert list(MERGE_TYPE.check({"whole": 1}, "")) == [".whole: expected map, got &{1}"]


def test_declared_fields_can_be_found_by_path() -> None:
    fields: FieldSet = {
        "f:text": {"f:odd": {}},
        "f:any": {"f:a": {"f:b": {}}},
        "f:keyed": {'k:{"k":"a"}': {"f:v": {"f:c": {}}}},
        "f:odd": {"f:a": {}},
    }
    assert MERGE_TYPE.named(fields) == {
        "f:text": {".": {}, "f:odd": {}},
        "f:any": {".": {}, "f:a": {"f:b": {}}},
        "f:keyed": {".": {}, 'k:{"k":"a"}': {"f:v": {".": {}, "f:c": {}}}},
        "f:odd": {"f:a": {}},
    }


def test_fields_below_an_atomic_value_do_not_matter() -> None:
    item = 'k:{"k":"a"}'
    fields: FieldSet = {
        "f:text": {"f:odd": {}},
        "f:any": {"f:a": {"f:b": {}}},
        "f:listed": {"i:0": {}},
        "f:keyed": {item: {".": {}, "f:v": {"f:c": {}}}},
        "f:maps": {"f:x": {"f:a": {}}},
        "f:whole": {".": {}, "f:a": {}},
    }
    assert MERGE_TYPE.reconciled(fields) == {**fields, "f:listed": {}, "f:whole": {}}


def test_raw_extensions_are_owned_as_a_whole() -> None:
    stored = StoredObject(f"{APPS}.ControllerRevision", "apps/v1")
    assert stored.apply("a", data={"spec": {"a": 1}})[0].fields == {"f:data": {}}


def test_custom_kinds_with_a_status_reset_it() -> None:
    properties = {name: {"type": "object"} for name in ("metadata", "spec", "status")}
    schema = Definitions.builtin().node({"type": "object", "properties": properties})
    manager = FieldManager(schema, "example.com/v1", kind="Widget")
    widget = {"metadata": {}, "spec": {"a": 1}, "status": {"b": 1}}

    def owned(subresource: str) -> list[str]:
        entries = manager.update(None, widget, "me", "2024-01-01T00:00:00Z", subresource)["metadata"]["managedFields"]
        return list(entries[0]["fieldsV1"])

    assert (owned(""), owned("status")) == (["f:spec"], ["f:status"])

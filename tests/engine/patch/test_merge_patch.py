from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.engine.patch import merge_patch
from ctrlmgr.engine.patch.go_value import plain
from ctrlmgr.errors import BadRequest, Invalid


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        # RFC 7386, appendix A: the cases in which document and patch are objects
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        # cases of Go's library
        ({"e": None}, {"e": {"a": None, "b": 1}}, {"e": {"b": 1}}),
        ({}, {"a": [{"b": None, "c": [None]}]}, {"a": [{"c": [None]}]}),
        ({"a": [1]}, {"a": [{"b": None}]}, {"a": [{}]}),
        ({"a": {"x": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ({"a": {"x": 1}}, {"a": 0}, {"a": 0}),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_objects_are_merged(document: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    before = plain([document, patch])
    assert merge_patch(document, patch) == result
    assert plain([document, patch]) == before


def test_unchanged_parts_are_shared() -> None:
    document = {"metadata": {"labels": {"a": "b"}}, "data": {"x": "y"}}
    assert merge_patch(document, {"data": {"x": None}})["metadata"] is document["metadata"]


@pytest.mark.parametrize("patch", ["text", 5, True, None])
def test_a_scalar_patch_is_malformed(patch: Any) -> None:
    with pytest.raises(BadRequest, match=r"^Invalid JSON Patch$"):
        merge_patch({}, patch)


def test_a_list_patch_would_replace_the_object_by_a_list() -> None:
    with pytest.raises(Invalid) as refused:
        merge_patch({}, [{"a": 1}])
    assert refused.value.details is not None
    [cause] = refused.value.details.causes
    assert (cause.field, cause.reason) == ("patch", "FieldValueInvalid")
    assert 'Invalid value: [{"a":1}]: couldn\'t get version/kind; json parse error' in cause.message

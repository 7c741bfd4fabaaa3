from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.engine.patch import json_patch, merge_patch, strategic_merge_patch
from ctrlmgr.engine.patch.json_patch import same_json
from ctrlmgr.errors import Invalid
from ctrlmgr.schema.definitions import Definitions

CONFIG_MAP = Definitions.builtin().schema("io.k8s.api.core.v1.ConfigMap")
POD = Definitions.builtin().schema("io.k8s.api.core.v1.Pod")

names = st.sampled_from("abc")
scalars = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"])
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
documents = st.dictionaries(names, values, max_size=3)


def without_null_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_null_fields(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_null_fields(each) for each in value]
    return value


plain_lists = st.lists(scalars, max_size=3)  # Go's library treats nulls in objects in lists inconsistently
plain_patches = st.dictionaries(
    names, st.recursive(scalars | plain_lists, lambda inner: st.dictionaries(names, inner, max_size=3)), max_size=3
)


@settings(deadline=None)
@given(documents, plain_patches)
def test_a_merge_patch_is_idempotent(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


@settings(deadline=None)
@given(documents)
def test_a_merge_patch_of_an_empty_object_creates_its_content(patch: dict[str, Any]) -> None:
    assert merge_patch({}, patch) == without_null_fields(patch)


@settings(deadline=None)
@given(documents, documents)
def test_a_merge_patch_changes_only_the_named_fields(document: dict[str, Any], patch: dict[str, Any]) -> None:
    result = merge_patch(document, patch)
    assert {name: result[name] for name in result.keys() - patch.keys()} == {
        name: document[name] for name in document.keys() - patch.keys()
    }
    assert result.keys() & patch.keys() == {name for name, value in patch.items() if value is not None}


flat = st.dictionaries(names, st.sampled_from(["1", "2"]), max_size=3)
flat_patch = st.dictionaries(names, st.sampled_from(["1", "3", None]), max_size=3)


@settings(deadline=None)
@given(flat, flat, flat_patch, flat_patch)
def test_a_strategic_merge_patch_of_maps_equals_a_merge_patch(
    data: dict[str, str], labels: dict[str, str], new_data: dict[str, Any], new_labels: dict[str, Any]
) -> None:
    document = {"data": data, "metadata": {"name": "c", "labels": labels}}
    patch = {"data": new_data, "metadata": {"labels": new_labels}}
    assert strategic_merge_patch(document, patch, CONFIG_MAP) == merge_patch(document, patch)


container_fields = st.fixed_dictionaries(
    {}, optional={"image": st.sampled_from("xy"), "command": st.lists(names, max_size=2)}
)
containers = st.dictionaries(names, container_fields, max_size=3).map(
    lambda named: [{"name": name, **fields} for name, fields in named.items()]
)


@settings(deadline=None)
@given(containers, containers)
def test_merged_lists_contain_both_sides_items_in_the_patchs_order(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]]
) -> None:
    patch = {"spec": {"containers": theirs}}
    result = strategic_merge_patch({"spec": {"containers": ours}}, patch, POD)["spec"]["containers"]
    expected = {each["name"]: each for each in ours}
    for each in theirs:
        expected[each["name"]] = expected.get(each["name"], {}) | each
    assert {each["name"]: each for each in result} == expected
    assert len(result) == len(expected)
    named = [each["name"] for each in theirs]
    assert [each["name"] for each in result if each["name"] in named] == named
    others = [each["name"] for each in ours if each["name"] not in named]
    assert [each["name"] for each in result if each["name"] not in named] == others
    assert strategic_merge_patch({"spec": {"containers": result}}, patch, POD)["spec"]["containers"] == result


tokens = st.lists(st.sampled_from(["a", "b", "0", "1", "-", "-1"]), min_size=1, max_size=3)
pointers = tokens.map(lambda each: "/" + "/".join(each))
operations = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(["add", "replace", "test"]), "path": pointers, "value": values}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": pointers}),
    st.fixed_dictionaries({"op": st.sampled_from(["move", "copy"]), "from": pointers, "path": pointers}),
)


@settings(deadline=None)
@given(documents, st.lists(operations, max_size=4))
def test_many_operations_equal_successive_single_ones(document: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    """One JSON patch that copies only the changed parts gives the same result as one patch per operation on full
    copies.
    """
    before = copy.deepcopy((document, steps))
    expected: Any = copy.deepcopy(document)
    for step in steps:
        try:
            expected = copy.deepcopy(json_patch(copy.deepcopy(expected), copy.deepcopy([step])))
        except Invalid:
            expected = None
            break
    try:
        result = json_patch(document, steps)
    except Invalid:
        result = None
    assert same_json(result, expected)
    assert (document, steps) == before


from_the_start = pointers.filter(lambda path: "-" not in path)


@settings(deadline=None)
@given(documents, from_the_start, values)
def test_an_added_value_can_be_tested_and_removed(document: dict[str, Any], path: str, value: Any) -> None:
    add = {"op": "add", "path": path, "value": value}
    try:
        added = json_patch(document, [add])
    except Invalid:
        return
    json_patch(added, [{"op": "test", "path": path, "value": value}])
    removed = json_patch(added, [{"op": "remove", "path": path}])
    assert removed == document or json_patch(document, [{"op": "remove", "path": path}]) == removed

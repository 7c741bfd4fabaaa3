from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.engine.managedfields import field_set, path_element
from ctrlmgr.engine.managedfields.field_set import EVERY, FieldSet, Path, sort_elements
from ctrlmgr.engine.managedfields.schema_merge_types import merge_type_of
from ctrlmgr.schema.definitions import Definitions

ELEMENTS = ["f:a", "f:b", 'k:{"n":1}', 'v:"x"']
paths = st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=3).map(tuple)
path_sets = st.frozensets(paths, max_size=8)


def made_of(paths: frozenset[Path]) -> FieldSet:
    return field_set.of_paths(*paths)


def members(fields: FieldSet) -> frozenset[Path]:
    found = list(field_set.paths(fields))
    assert len(found) == len(set(found))
    return frozenset(found)


def is_canonical(fields: FieldSet, *, root: bool = True) -> bool:
    """Return whether each node of the set without children is marked as a member."""
    if not root and list(fields) == ["."]:
        return False
    return all(is_canonical(node, root=False) for node in fields.values())


@settings(deadline=None)
@given(path_sets)
def test_a_set_equals_its_paths(ours: frozenset[Path]) -> None:
    fields = made_of(ours)
    assert members(fields) == ours
    assert all(field_set.contains(fields, path) for path in ours)
    assert is_canonical(fields)


@settings(deadline=None)
@given(path_sets, path_sets)
def test_set_operations_equal_those_on_sets_of_paths(ours: frozenset[Path], theirs: frozenset[Path]) -> None:
    one, other = made_of(ours), made_of(theirs)
    for result, expected in (
        (field_set.union(one, other), ours | theirs),
        (field_set.intersection(one, other), ours & theirs),
        (field_set.difference(one, other), ours - theirs),
    ):
        assert members(result) == expected
        assert is_canonical(result)
    assert (one, other) == (made_of(ours), made_of(theirs))


def is_in_order(fields: FieldSet) -> bool:
    return msgspec.json.encode(fields) == msgspec.json.encode(field_set.in_order(fields))


@settings(deadline=None)
@given(path_sets, path_sets)
def test_set_operations_keep_the_order(ours: frozenset[Path], theirs: frozenset[Path]) -> None:
    one, other = field_set.in_order(made_of(ours)), field_set.in_order(made_of(theirs))
    assert is_in_order(field_set.union(one, other))
    assert is_in_order(field_set.difference(one, other))


@settings(deadline=None)
@given(path_sets, path_sets)
def test_a_difference_with_children_removes_descendants(ours: frozenset[Path], theirs: frozenset[Path]) -> None:
    result = field_set.difference_with_children(made_of(ours), made_of(theirs))
    assert members(result) == {path for path in ours if not any(path[: len(each)] == each for each in theirs)}
    assert is_canonical(result)


@settings(deadline=None)
@given(path_sets, path_sets)
def test_an_unchanged_set_is_the_same_instance(ours: frozenset[Path], theirs: frozenset[Path]) -> None:
    one, other = made_of(ours), made_of(theirs - ours)
    assert field_set.difference(one, other) is one
    assert field_set.union(one, {}) is one
    assert field_set.union({}, one) == one
    both = made_of(ours | theirs)
    assert field_set.union(both, one) is both
    assert field_set.difference_with_children(one, {}) is one


@settings(deadline=None)
@given(path_sets)
def test_fields_v1_survives_encoding_and_decoding(ours: frozenset[Path]) -> None:
    ordered = field_set.in_order(made_of(ours))
    decoded = field_set.decode(msgspec.json.decode(msgspec.json.encode(ordered)))
    assert decoded == made_of(ours)
    assert msgspec.json.encode(field_set.in_order(decoded)) == msgspec.json.encode(ordered)


@settings(deadline=None)
@given(path_sets)
def test_paths_have_kubernetes_order(ours: frozenset[Path]) -> None:
    """Return the paths in a set, in an order in which a path comes before longer paths with the path as prefix, and
    siblings are sorted.
    """
    listed = list(field_set.paths(made_of(ours)))
    prefixes = [path[:depth] for path in listed for depth in range(1, len(path))]
    for prefix in prefixes:
        here = [path for path in listed if path[:-1] == prefix]
        below = [path for path in listed if path[: len(prefix)] == prefix and len(path) > len(prefix) + 1]
        assert not below or not here or max(map(listed.index, here)) < min(map(listed.index, below))


def test_elements_are_ordered_by_type() -> None:
    ordered = [
        ".", "f:", "f:B", "f:a", "f:ab", "f:é",
        'k:{"a":2}', 'k:{"a":10}', 'k:{"a":10,"b":1}', 'k:{"a":"1"}', 'k:{"a":true}', 'k:{"b":1}',
        "v:-1", "v:2", "v:10.5", 'v:"10"', 'v:"2"', "v:false", "v:true", "v:[1]", 'v:{"a":1}', "v:null",
        "i:2", "i:10",
    ]  # fmt: skip
    fields: FieldSet = {element: {} for element in reversed(ordered)}
    assert list(field_set.in_order({"f:x": fields})["f:x"]) == ordered


@pytest.mark.parametrize(
    ("spelt", "canonical"),
    [
        ("f:a b", "f:a b"),
        ("f:", "f:"),
        ('k:{ "b": 1, "a": "x" }', 'k:{"a":"x","b":1}'),
        ('k:{"a":1.0}', 'k:{"a":1}'),
        ('k:{"a":1.5}', 'k:{"a":1.5}'),
        ('v:"\\u0041<>&"', 'v:"A\\u003c\\u003e\\u0026"'),
        ("v: 1", "v:1"),
        ("v:1e2", "v:100"),
        ("v:null", "v:null"),
        ("i:+1", "i:1"),
        ("x:whatever", None),
    ],
)
def test_elements_have_one_encoding(spelt: str, canonical: str | None) -> None:
    assert path_element.canonical(spelt) == canonical


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([], "not an object"),
        ({"f:a": []}, "not an object"),
        ({"f:a": {"f:b": "x"}}, "not an object"),
        ({"a": {}}, "key must be 2 characters long:"),
        ({"": {}}, "key must be 2 characters long:"),
        ({"data": {}}, "missing colon: data"),
        ({"k:[]": {}}, "not an object: []"),
        ({"v:{": {}}, "Input data was truncated"),
        ({"i:a": {}}, "invalid literal"),
    ],
)
def test_invalid_fields_v1_is_refused(fields: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("[]", r"\[\]")):
        field_set.decode(fields)


def test_different_encodings_of_one_path_are_merged() -> None:
    decoded = field_set.decode({'k:{"a":1,"b":2}': {"f:x": {}}, 'k:{"b":2,"a":1.0}': {"f:y": {}, ".": {}}})
    assert decoded == {'k:{"a":1,"b":2}': {".": {}, "f:x": {}, "f:y": {}}}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:name"), '.spec.ports[port=80,protocol="TCP"].name'),
        (("f:metadata", "f:finalizers", 'v:"x/a"'), '.metadata.finalizers[="x/a"]'),
        (("f:a", "v:1.5", "v:true", "v:null", "i:3"), ".a[=1.5][=true][=null][3]"),
        (("v:1000000", 'v:[1,"a"]', 'v:{"a":1}'), '[=1e+06][=[1,"a"]][=a=1]'),
    ],
)
def test_paths_are_formatted_like_kubernetes(path: Path, shown: str) -> None:
    assert field_set.text(path) == shown


def test_patterns_match_paths_and_their_ancestors() -> None:
    container: FieldSet = {".": {}, "f:image": {}, "f:resources": {".": {}, "f:limits": {"f:cpu": {}}}}
    fields: FieldSet = {
        "f:metadata": {"f:labels": {}},
        "f:spec": {".": {}, "f:nodeName": {}, "f:containers": {'k:{"name":"a"}': container, 'k:{"name":"b"}': {}}},
    }
    pattern = field_set.of_paths(("spec", "containers", EVERY, "resources"))
    kept = {".": {}, "f:resources": container["f:resources"]}
    containers = {'k:{"name":"a"}': kept, 'k:{"name":"b"}': {}}
    assert field_set.matching(fields, pattern) == {"f:spec": {".": {}, "f:containers": containers}}
    assert field_set.matching({"f:spec": {"f:x": {}}}, pattern) == {}
    assert field_set.matching({"f:spec": {".": {}, "f:x": {}}}, pattern) == {"f:spec": {}}


def test_no_set_contains_the_whole_object() -> None:
    assert not field_set.contains({}, ())
    assert not field_set.contains({"f:a": {}}, ())
    assert not field_set.contains({"f:a": {"f:b": {}}}, ("f:a",))
    assert not field_set.contains({"f:a": {}}, ("f:a", "f:b"))


def _element(random: Random, kind: int) -> str:
    text = "".join(random.choices('ab-.:/!" #$%&<>~}{\\é\x7f09AZ,=+', k=random.randrange(5)))
    makes = (
        lambda: path_element.key([("name", text)]),
        lambda: path_element.key([("names", text)]),
        lambda: path_element.key([("containerPort", random.randrange(99)), ("protocol", text)]),
        lambda: path_element.item(text),
        lambda: path_element.item(random.choice([1, 2, 10, True, 1.5])),
    )
    return makes[kind]()


def test_fast_sorting_equals_general_sorting() -> None:
    random, quick = Random(1), 0
    for _ in range(5_000):
        usual = random.randrange(5)
        kinds = [usual if random.random() < 0.9 else random.randrange(5) for _ in range(random.randrange(2, 6))]
        elements = sorted({_element(random, kind) for kind in kinds})
        quick += len(elements) > 1 and path_element.are_in_order(elements)
        assert sort_elements(elements) == sorted(elements, key=path_element.order)
        assert sort_elements([*elements, "."]) == [".", *sort_elements(elements)]
    assert quick > 100


@pytest.mark.parametrize("value", ["web", "a!", "a b", 'a"b', "é", "<", "\\", "", 7, None])
def test_an_item_with_one_key_has_the_element_of_its_key(value: Any) -> None:
    merge_type = merge_type_of(Definitions.builtin().schema("io.k8s.api.core.v1.PodSpec"))
    fields = merge_type.whole({"containers": [{"name": value, "image": "x"}]})["f:containers"]
    assert path_element.key([("name", value)]) in fields

from __future__ import annotations

import copy
from typing import Any

import pytest

from ctrlmgr.engine.patch import strategic_merge_patch
from ctrlmgr.errors import ApiError, BadRequest, Invalid, UnknownError
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema import Schema

CORE = "io.k8s.api.core.v1"
RETAIN = "$retainKeys"
DELETE = "$deleteFromPrimitiveList"
ORDER = "$setElementOrder"


def schema(definition: str) -> Schema:
    return Definitions.builtin().schema(definition)


SERVICE = schema(f"{CORE}.Service")
POD = schema(f"{CORE}.Pod")
DEPLOYMENT = schema("io.k8s.api.apps.v1.Deployment")


def patched(document: dict[str, Any], patch: Any, of: Schema = SERVICE) -> dict[str, Any]:
    """Apply a patch, and check that applying it changes neither the document nor the patch."""
    before = copy.deepcopy((document, patch))
    try:
        return strategic_merge_patch(document, patch, of)
    finally:
        assert (document, patch) == before


def a(port: int, **fields: Any) -> dict[str, Any]:
    return {"port": port, **fields}


@pytest.mark.parametrize(
    ("spec", "patch", "expected"),
    [
        ({"type": "A"}, {"type": "B"}, {"type": "B"}),
        ({"type": "A"}, {"type": None}, {}),
        ({}, {"type": None}, {}),
        ({}, {"selector": {"a": "b", "c": None}}, {"selector": {"a": "b"}}),
        ({"selector": {"a": "b"}}, {"selector": {"y": "1", "a": None}}, {"selector": {"y": "1"}}),
        ({"selector": {"a": "b"}}, {"selector": {"$patch": "replace", "z": "1"}}, {"selector": {"z": "1"}}),
        ({"selector": {"a": "b"}}, {"selector": {"$patch": "delete"}}, {"selector": {}}),
        ({}, {"selector": {"$patch": "delete"}}, {}),
        ({"selector": "odd"}, {"selector": {"$patch": "delete"}}, {}),
        ({"selector": {"a": "b"}}, {"selector": "odd"}, {"selector": "odd"}),
        ({"type": "A"}, {"$patch": "replace", "clusterIP": "x"}, {"clusterIP": "x"}),
    ],
)
def test_objects_are_merged(spec: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert patched({"spec": spec}, {"spec": patch}) == {"spec": expected}


def test_directives_apply_to_the_root_object() -> None:
    assert patched({"kind": "a"}, {"$patch": "replace", "kind": "b"}) == {"kind": "b"}
    assert patched({"kind": "a"}, {"$patch": "delete"}) == {}
    assert patched({"kind": "a"}, None) == {"kind": "a"}


def test_lists_without_a_strategy_are_replaced() -> None:
    before = {"spec": {"clusterIPs": ["a", "b"]}}
    assert patched(before, {"spec": {"clusterIPs": ["c"]}}) == {"spec": {"clusterIPs": ["c"]}}
    added = {"spec": {"clusterIPs": ["c", {"$patch": "delete"}, None]}}
    assert patched({"spec": {}}, added) == {"spec": {"clusterIPs": ["c", None]}}


@pytest.mark.parametrize(
    ("ports", "patch", "expected"),
    [
        ([a(1), a(2)], [a(2, name="x")], [a(1), a(2, name="x")]),
        ([a(1), a(2)], [a(3)], [a(3), a(1), a(2)]),
        ([a(1), a(2), a(3)], [a(3), a(1)], [a(2), a(3), a(1)]),
        ([a(1), a(2)], [{"$patch": "delete", "port": 1}], [a(2)]),
        ([a(1), a(2)], [{"$patch": "replace"}, a(9)], [a(9)]),
        ([a(1, name="x"), a(2)], [a(1, name=None)], [a(1), a(2)]),
        ([], [], []),
        ([a(1)], [], [a(1)]),
        # Of two items with the same key, the first is merged; both keep their positions.
        ([a(5, name="x"), a(5, name="y")], [a(5, nodePort=7)], [a(5, name="x", nodePort=7), a(5, name="y")]),
        # A key of another type is a different key.
        ([a(1)], [{"port": 1.0}, {"port": True}], [{"port": 1.0}, {"port": True}, a(1)]),
    ],
)  # fmt: skip
def test_lists_are_merged_by_key(ports: list[Any], patch: list[Any], expected: list[Any]) -> None:
    result = patched({"spec": {"ports": ports}}, {"spec": {"ports": patch}})["spec"]["ports"]
    assert [list(each.items()) for each in result] == [list(each.items()) for each in expected]


def test_objects_cannot_be_deleted_like_scalars() -> None:
    """A list item that is marked for deletion is merged, as in Kubernetes."""
    patch = {"spec": {f"{DELETE}/ports": [a(1, name="x")]}}
    assert patched({"spec": {"ports": [a(1), a(2)]}}, patch) == {"spec": {"ports": [a(1, name="x"), a(2)]}}


def test_merged_lists_are_created_and_deleted() -> None:
    new = {"spec": {"ports": [a(1, name=None), {"port": 2, "$patch": "delete"}]}}
    assert patched({"spec": {}}, new) == {"spec": {"ports": [a(1)]}}
    assert patched({"spec": {"ports": [a(1)]}}, {"spec": {"ports": None}}) == {"spec": {}}


@pytest.mark.parametrize(
    ("finalizers", "patch", "expected"),
    [
        (["a"], {"finalizers": ["b"]}, ["b", "a"]),
        (["a", "b"], {"finalizers": ["b", "b"]}, ["a", "b"]),
        (["a", "b", "c"], {f"{DELETE}/finalizers": ["a", "c", "z"]}, ["b"]),
        (["a"], {f"{DELETE}/finalizers": "odd"}, ["a"]),
        (["a", "b", "c"], {f"{ORDER}/finalizers": ["c", "d", "a"], "finalizers": ["d"]}, ["b", "c", "d", "a"]),
        (["a"], {f"{DELETE}/finalizers": None}, None),
        (None, {f"{DELETE}/finalizers": ["a"]}, None),
    ],
)
def test_lists_of_scalars_are_merged(finalizers: Any, patch: dict[str, Any], expected: Any) -> None:
    metadata = {} if finalizers is None else {"finalizers": finalizers}
    assert patched({"metadata": metadata}, {"metadata": patch})["metadata"].get("finalizers") == expected


@pytest.mark.parametrize(
    ("ports", "order", "patch", "expected"),
    [
        ([1, 2, 3], [3, 1], None, [2, 3, 1]),
        ([1, 2], [9, 2, 1], [a(9)], [9, 2, 1]),
        (None, [2, 1], [a(2), a(1)], [2, 1]),
        (None, [2], None, None),
        ([1, 2], [1], [{"port": 2, "$patch": "delete"}], [1]),
    ],
)
def test_a_set_element_order_directive_orders_a_list(ports: Any, order: list[int], patch: Any, expected: Any) -> None:
    spec = {} if ports is None else {"ports": [a(port) for port in ports]}
    change = {f"{ORDER}/ports": [a(port) for port in order], **({} if patch is None else {"ports": patch})}
    result = patched({"spec": spec}, {"spec": change})["spec"]
    assert result == ({} if expected is None else {"ports": [a(port) for port in expected]})


def test_merged_items_are_merged_recursively() -> None:
    pod = {"spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}], "args": ["x"]}]}}
    patch = {
        "spec": {"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}], "args": ["y"]}, {"name": "d"}]}
    }
    merged = [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]
    assert patched(pod, patch, POD) == {
        "spec": {"containers": [{"name": "c", "image": "i", "env": merged, "args": ["y"]}, {"name": "d"}]}
    }


def test_retain_keys_removes_all_other_keys() -> None:
    deployment = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {RETAIN: ["type"], "type": "Recreate"}}}
    assert patched(deployment, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_volumes_retain_keys_within_merged_items() -> None:
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]}}
    volume = {"name": "v", "hostPath": {"path": "/"}}
    patch = {"spec": {"volumes": [{RETAIN: ["name", "hostPath"], **volume}]}}
    assert patched(pod, patch, POD) == {"spec": {"volumes": [volume, {"name": "w", "emptyDir": {}}]}}


def test_unchanged_parts_are_shared() -> None:
    document = {"metadata": {"labels": {"a": "b"}}, "spec": {"type": "A"}}
    assert patched(document, {"spec": {"type": "B"}})["metadata"] is document["metadata"]


def assert_refused(
    error: type[ApiError], message: str, document: dict[str, Any], patch: Any, of: Schema = SERVICE
) -> None:
    with pytest.raises(error) as caught:
        patched(document, patch, of)
    assert str(caught.value) == message
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("patch", "error", "message"),
    [
        ([], BadRequest, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("x", BadRequest, "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        ({"$patch": "merge"}, UnknownError, "unknown patch type: merge in map: map[$patch:merge]"),
        ({"$patch": "x", "b": 1, "a": [1.5]}, UnknownError, "unknown patch type: x in map: map[$patch:x a:[1.5] b:1]"),
        ({RETAIN: "a"}, BadRequest, "invalid patch format of retainKeys"),
        ({RETAIN: ["a"], "b": 1}, BadRequest, "invalid patch format of retainKeys"),
        ({DELETE: ["a"]}, BadRequest, "invalid patch format of primitive list"),
        ({f"{DELETE}ing/a": ["a"]}, BadRequest, "invalid patch format of primitive list"),
        ({ORDER: ["a"]}, BadRequest, "invalid patch format of setElementOrder list"),
        ({f"{ORDER}/x": "a"}, UnknownError, "expected a []interface {}, but received a string"),
    ],
)
def test_malformed_patches_are_refused(patch: Any, error: type[ApiError], message: str) -> None:
    assert_refused(error, message, {}, patch)


NO_KEY = "does not contain declared merge key: port"
NO_MAP = "expected a map[string]interface {}, but received a"


@pytest.mark.parametrize(
    ("ports", "patch", "message"),
    [
        ([a(1)], {"ports": [{"name": "x"}]}, f"map: map[name:x] {NO_KEY}"),
        ([a(1)], {"ports": [{"$patch": "delete"}]}, f"map: map[$patch:delete] {NO_KEY}"),
        ([a(1)], {"ports": [{"$patch": "merge"}]}, "merging lists cannot yet be specified in the patch"),
        ([a(1)], {"ports": [{"$patch": "odd"}]}, "unknown patch type: odd in map: map[$patch:odd]"),
        ([a(1)], {"ports": [1]}, "list element types are not identical: [[map[port:1]] [1]]"),
        ([], {f"{ORDER}/ports": [a(1)]}, "no elements in any of the given slices"),
        (None, {f"{ORDER}/ports": [a(1)]}, "expected a []interface {}, but received a %!s(<nil>)"),
        ([a(1)], {f"{ORDER}/ports": [{"name": "x"}]}, f"map: map[name:x] {NO_KEY}"),
        ([a(1)], {f"{ORDER}/ports": ["x"], "ports": [a(1)]}, f"{NO_MAP} string"),
        ([a(1)], {f"{ORDER}/ports": [a(1)], "ports": ["x"]}, f"{NO_MAP} string"),
        ([1], {f"{ORDER}/ports": [a(1)]}, f"{NO_MAP} int64"),
        (
            [a(1)],
            {f"{ORDER}/ports": [a(1)], "ports": {}},
            "expected a []interface {}, but received a map[string]interface {}",
        ),
        (
            [a(1)],
            {f"{ORDER}/ports": [a(1)], "ports": [a(2)]},
            "The order in patch list:\n[map[port:2]]\n doesn't match $setElementOrder list:\n[map[port:1]]\n",
        ),
        (
            [a(1), a(2)],
            {f"{ORDER}/ports": [a(2), a(1)], "ports": [a(1), a(2)]},
            "The order in patch list:\n[map[port:1] map[port:2]]\n doesn't match $setElementOrder list:\n"
            "[map[port:2] map[port:1]]\n",
        ),
    ],
)
def test_unmergeable_lists_are_an_error(ports: Any, patch: dict[str, Any], message: str) -> None:
    assert_refused(UnknownError, message, {"spec": {"ports": ports}}, {"spec": patch})


def test_lists_of_lists_are_refused() -> None:
    rejected = "the server rejected our request due to an error in our request"
    assert_refused(Invalid, rejected, {"metadata": {"finalizers": []}}, {"metadata": {"finalizers": [["b"]]}})


@pytest.mark.parametrize(
    ("both", "message"),
    [
        ({"odd": {}}, 'unable to find api field in struct Service for the json field "odd"'),
        ({"spec": {"odd": []}}, 'unable to find api field in struct ServiceSpec for the json field "odd"'),
        ({"spec": []}, "expected slice or array type, but got: struct"),
        (
            {"spec": {"selector": {"a": {}}}},
            "merging an object in json but data type is not struct, instead is: map",
        ),
    ],
)
def test_unknown_fields_cannot_be_merged(both: dict[str, Any], message: str) -> None:
    assert_refused(UnknownError, message, both, both)


def with_field(name: str, **field: Any) -> Schema:
    """Return an object schema with features that no built-in kind has."""
    return Definitions.builtin().node({"type": "object", "properties": {name: field}})


def test_lists_of_objects_without_a_merge_key_cannot_be_merged() -> None:
    items = {"type": "object", "properties": {}}
    odd = with_field("list", type="array", items=items, **{"x-kubernetes-patch-strategy": "merge"})
    message = "cannot merge lists without merge key for struct"
    assert_refused(UnknownError, message, {"list": [{"a": 1}]}, {"list": [{"a": 2}]}, odd)


def test_maps_can_be_replaced_completely() -> None:
    values = {"type": "string"}
    odd = with_field("map", type="object", additionalProperties=values, **{"x-kubernetes-patch-strategy": "replace"})
    assert patched({"map": {"a": "1"}}, {"map": {"b": "2"}}, odd) == {"map": {"b": "2"}}

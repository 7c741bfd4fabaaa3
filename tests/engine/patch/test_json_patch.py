from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.engine.patch import check_json_patch, json_patch
from ctrlmgr.engine.patch.json_patch import MAX_COPIED, MAX_OPERATIONS, is_failed_test, problem_of, same_json
from ctrlmgr.errors import BadRequest, Invalid, RequestEntityTooLarge, StatusDetails

DOCUMENT = {"data": {"x": "y", "z": "1"}, "list": [1, 2, 3], "a/b": {"m~n": 0}, "none": None}


def op(kind: str, path: str, **fields: Any) -> dict[str, Any]:
    return {"op": kind, "path": path, **fields}


@pytest.mark.parametrize(
    ("operations", "changed"),
    [
        ([op("add", "/data/new", value="1")], {"data": {"x": "y", "z": "1", "new": "1"}}),
        ([op("add", "/data/x", value="other")], {"data": {"x": "other", "z": "1"}}),
        ([op("add", "/data/new")], {"data": {"x": "y", "z": "1", "new": None}}),
        ([op("add", "/list/1", value=9)], {"list": [1, 9, 2, 3]}),
        ([op("add", "/list/3", value=9)], {"list": [1, 2, 3, 9]}),
        ([op("add", "/list/-", value=9)], {"list": [1, 2, 3, 9]}),
        ([op("add", "/list/-1", value=9)], {"list": [1, 2, 3, 9]}),
        ([op("add", "/list/-4", value=9)], {"list": [9, 1, 2, 3]}),
        ([op("remove", "/data/x")], {"data": {"z": "1"}}),
        ([op("remove", "/list/-1")], {"list": [1, 2]}),
        ([op("remove", "/list/+0")], {"list": [2, 3]}),
        ([op("replace", "/list/-3", value=9)], {"list": [9, 2, 3]}),
        ([op("replace", "/data/w", value="set")], {"data": {"x": "y", "z": "1", "w": "set"}}),
        ([op("move", "/moved", **{"from": "/data/x"})], {"data": {"z": "1"}, "moved": "y"}),
        ([op("copy", "/data/w", **{"from": "/data/x"})], {"data": {"x": "y", "z": "1", "w": "y"}}),
        ([op("copy", "/w", **{"from": "/data/missing"})], {"w": None}),
        ([op("test", "/data/x", value="y"), op("remove", "/data/x")], {"data": {"z": "1"}}),
        ([op("test", "/missing", value=None)], {}),
        ([op("test", "/missing")], {}),
        ([op("test", "", value=DOCUMENT)], {}),
        ([op("add", "/a~1b/m~0n", value=1)], {"a/b": {"m~n": 1}}),
        ([op("add", "what stands here/top", value=1)], {"top": 1}),
        ([op("replace", "", value="scalar")], {}),
        ([], {}),
        (None, {}),
    ],
)
def test_operations_equal_kubernetes_library(operations: Any, changed: dict[str, Any]) -> None:
    result = json_patch(DOCUMENT, operations)
    assert result == {**DOCUMENT, **changed}
    assert DOCUMENT == {"data": {"x": "y", "z": "1"}, "list": [1, 2, 3], "a/b": {"m~n": 0}, "none": None}


def test_the_whole_document_can_be_replaced() -> None:
    assert json_patch(DOCUMENT, [op("replace", "", value={"b": 1}), op("add", "/c", value=2)]) == {"b": 1, "c": 2}


@pytest.mark.parametrize(
    "operation",
    [
        op("test", "/data/z", value="no"),
        op("test", "/data/z"),
        op("test", "/list/0", value=True),
        op("test", "/list/0", value=1.0),
        op("test", "/list/0/deeper", value=1),
        op("test", "", value=[]),
        op("remove", "/data/none"),
        op("remove", "/list/3"),
        op("remove", "/list/-4"),
        op("remove", "/list/-"),
        op("remove", ""),
        op("add", "/list/4", value=1),
        op("add", "/list/-5", value=1),
        op("add", "/list/x", value=1),
        op("add", "/list/" + "9" * 5000, value=1),
        op("add", "/none/deeper", value=1),
        op("add", "/data/x/deeper", value=1),
        op("add", "/missing/deeper", value=1),
        op("add", "", value={}),
        op("replace", "/list/3", value=1),
        op("move", "/x", **{"from": "/missing"}),
        op("move", "/x"),
        op("copy", "/missing/x", **{"from": "/data"}),
        op("copy", "/x", **{"from": "/list/7"}),
        op("bogus", "/data"),
        {"op": 5, "path": "/data"},
        {"op": "remove"},
        {"op": "remove", "path": 5},
        {"path": "/data"},
        None,
    ],
)
def test_an_inapplicable_patch_is_refused_with_a_generic_message(operation: Any) -> None:
    with pytest.raises(Invalid) as refused:
        json_patch(DOCUMENT, [operation])
    assert str(refused.value) == "the server rejected our request due to an error in our request"
    assert refused.value.details == StatusDetails()


TOO_LONG = "9" * 30
REASONS: list[tuple[Any, str]] = [
    (op("test", "/data/z", value="no"), "testing value /data/z failed: test failed"),
    (op("test", "", value=[]), "testing value  failed: test failed"),
    (op("test", "/a/b/c", value=1), "test operation does not apply: is missing path: /a/b/c: missing value"),
    (
        op("test", "/list/9", value=1),
        "error in test for path: '/list/9': Unable to access invalid index: 9: invalid index referenced",
    ),
    (op("add", "/none/x", value=1), 'add operation does not apply: doc is missing path: "/none/x": missing value'),
    (op("add", "", value={}), 'add operation does not apply: doc is missing path: "": missing value'),
    (
        op("add", "/list/x", value=1),
        "error in add for path: '/list/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": "
        "invalid syntax",
    ),
    (
        op("add", "/list/5", value=1),
        "error in add for path: '/list/5': Unable to access invalid index: 5: invalid index referenced",
    ),
    ({"op": "add"}, "add operation failed to decode path: missing value"),
    (
        op("remove", "/data/w"),
        "error in remove for path: '/data/w': Unable to remove nonexistent key: w: missing value",
    ),
    (
        op("remove", f"/list/{TOO_LONG}"),
        f"error in remove for path: '/list/{TOO_LONG}': strconv.Atoi: parsing \"{TOO_LONG}\": value out of range",
    ),
    (op("remove", "/x/y"), 'remove operation does not apply: doc is missing path: "/x/y": missing value'),
    (op("replace", "/x/y", value=1), "replace operation does not apply: doc is missing path: /x/y: missing value"),
    (op("replace", "/list/7", value=1), "replace operation does not apply: doc is missing key: /list/7: missing value"),
    (
        {"op": "replace"},
        "replace operation failed to decode path: operation missing path field: missing value",
    ),
    (
        {"op": "replace", "path": 1},
        "replace operation failed to decode path: json: cannot unmarshal number into Go value of type string",
    ),
    (
        op("move", "/x"),
        "move operation failed to decode from: operation, missing from field: missing value",
    ),
    (
        op("move", "/x", **{"from": "/data/w"}),
        "error in move for path: 'w': Unable to remove nonexistent key: w: missing value",
    ),
    (
        op("move", "/x", **{"from": "/y/z"}),
        "move operation does not apply: doc is missing from path: /y/z: missing value",
    ),
    (
        op("move", "/y/z", **{"from": "/data/x"}),
        "move operation does not apply: doc is missing destination path: /y/z: missing value",
    ),
    (
        op("copy", "/y/z", **{"from": "/data/x"}),
        "copy operation does not apply: doc is missing destination path: /y/z: missing value",
    ),
    (
        op("copy", "/x", **{"from": "/list/7"}),
        "error in copy for from: '/list/7': Unable to access invalid index: 7: invalid index referenced",
    ),
    ({"op": "copy", "from": "/data"}, "copy operation failed to decode path: missing value"),
    (op("bogus", "/data"), "Unexpected kind: bogus"),
    ({"path": "/data"}, "Unexpected kind: unknown"),
]


@pytest.mark.parametrize(("operation", "reason"), REASONS)
def test_the_cause_of_an_inapplicable_patch_has_the_librarys_message(operation: Any, reason: str) -> None:
    with pytest.raises(Invalid) as refused:
        json_patch(DOCUMENT, [operation])
    assert problem_of(refused.value) == reason
    assert is_failed_test(refused.value) is reason.startswith("testing value")


def test_later_operations_do_not_change_earlier_values() -> None:
    value = {"list": [1]}
    operations = [op("add", "/new", value=value), op("add", "/new/list/-", value=2), op("add", "/new/x", value=3)]
    assert json_patch({}, operations) == {"new": {"list": [1, 2], "x": 3}}
    assert value == {"list": [1]}


def test_a_copy_is_independent_of_its_source() -> None:
    operations = [
        op("add", "/data/list", value=[1]),
        op("add", "/data/list/-", value=2),
        op("copy", "/other", **{"from": "/data"}),
        op("add", "/other/list/-", value=3),
        op("add", "/data/list/-", value=4),
    ]
    assert json_patch({"data": {}}, operations) == {"data": {"list": [1, 2, 4]}, "other": {"list": [1, 2, 3]}}


def test_unchanged_parts_are_shared() -> None:
    document = {"metadata": {"labels": {"a": "b"}}, "data": {"x": "y"}}
    result = json_patch(document, [op("add", "/data/z", value="1")])
    assert result["metadata"] is document["metadata"]


def test_a_patch_can_have_ten_thousand_operations() -> None:
    operations = [op("add", "/list/-", value=index) for index in range(MAX_OPERATIONS)]
    assert json_patch({"list": []}, operations) == {"list": list(range(MAX_OPERATIONS))}
    with pytest.raises(RequestEntityTooLarge, match=r"is 10000, got 10001$"):
        json_patch({"list": []}, [*operations, op("test", "", value={})])


def test_copies_can_total_three_mebibytes() -> None:
    document = {"big": "x" * (MAX_COPIED // 3 - 2)}
    copies = [op("copy", f"/copy{index}", **{"from": "/big"}) for index in range(3)]
    assert len(json_patch(document, copies)) == 4
    with pytest.raises(Invalid):
        json_patch(document, [*copies, op("copy", "/more", **{"from": "/copy0"})])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ("text", "json: cannot unmarshal string into Go value of type jsonpatch.Patch"),
        ([5], "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        ([[]], "json: cannot unmarshal array into Go value of type jsonpatch.Operation"),
        ([True], "json: cannot unmarshal bool into Go value of type jsonpatch.Operation"),
    ],
)
def test_an_invalid_list_of_operations_is_malformed(body: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        json_patch({}, body)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ([5], "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([{"op": 5}], "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        ([{"path": []}], "json: cannot unmarshal array into Go struct field jsonPatchOp.path of type string"),
    ],
)
def test_field_validation_is_strict_about_types(body: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check_json_patch(body)
    assert str(refused.value) == f"error decoding patch: {message}"


def test_field_validation_reports_unknown_fields() -> None:
    assert check_json_patch([op("add", "/a", value={"any": 1}), op("add", "/b", foo=1)]) == (
        'json patch unknown field "[1].foo"',
    )
    assert check_json_patch([None, {"op": None}]) == ()
    assert check_json_patch(None) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (1, True, False),
        (0, False, False),
        (1, 1.0, False),
        ({"a": [1]}, {"a": [True]}, False),
        ([1], [1, 1], False),
        ({"a": None}, {}, False),
    ],
)
def test_equal_json_documents_are_equal_tests(one: Any, other: Any, same: bool) -> None:
    assert same_json(one, other) is same

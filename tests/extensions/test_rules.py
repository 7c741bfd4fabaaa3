"""Tests of validation rules of custom resources: valid CustomResourceDefinitions, and rejected custom objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ctrlmgr.api.field import Path
from ctrlmgr.extensions.rules.compiled_rules import compile_rules
from ctrlmgr.extensions.rules.rule_evaluation import evaluate_rules
from ctrlmgr.extensions.structural import MISSING
from ctrlmgr.extensions.validation.rule_validation import expression_errors


def schema(*rules: str | Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    listed = [{"rule": each} if isinstance(each, str) else dict(each) for each in rules]
    return {**fields, **({"x-kubernetes-validations": listed} if listed else {})}


def whole(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def rule_errors(raw: Mapping[str, Any], value: Any, old: Any = MISSING) -> tuple[list[str], list[str]]:
    node = compile_rules(raw)
    assert node is not None
    warnings: list[str] = []
    return [each.message for each in evaluate_rules(node, value, old, warnings=warnings)], warnings


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    (schema("self.nope == 1", **whole(a=NUMBER)), "rule: undefined field 'nope'"),
    (
        schema("self.a == 'x'", **whole(a=NUMBER)),
        "rule: found no matching overload for '_==_' applied to '(int, string)'",
    ),
    (schema("self.a", **whole(a=NUMBER)), "rule: cel expression must evaluate to a bool"),
    (schema("self.metadata.labels == {}", **whole()), "rule: undefined field 'labels'"),
    (schema({"rule": "true", "messageExpression": "1"}, **whole()), "messageExpression: must evaluate to a string"),
    (schema({"rule": "true", "optionalOldSelf": True}, **whole()), "optionalOldSelf: may not be set if oldSelf"),
    (
        whole(l={"type": "array", "items": schema("self > oldSelf", **NUMBER)}),
        "rule: oldSelf cannot be used on the unc",
    ),
]


@pytest.mark.parametrize(("raw", "problem"), REFUSED)
def test_an_invalid_rule_is_refused(raw: dict[str, Any], problem: str) -> None:
    (error,) = expression_errors(raw, Path("schema"))
    place, _, words = problem.partition(": ")
    assert error.field.endswith(f"x-kubernetes-validations[0].{place}")
    assert words in error.body


def test_expressions_name_fields_by_their_escaped_names() -> None:
    properties = {"x-y": TEXT, "a.b": TEXT, "in": TEXT, "__u__": TEXT, "0": TEXT}
    rule = "self.x__dash__y == 'a' && self.a__dot__b == 'b' && self.__in__ == 'c'"
    rule += " && has(self.__underscores__u__underscores__)"
    raw = schema(rule, **whole(**properties))
    assert rule_errors(raw, {"x-y": "a", "a.b": "b", "in": "c", "__u__": "d"}) == ([], [])


FAILURES: list[tuple[dict[str, Any], Any, list[str]]] = [
    (whole(s=schema("self != 'x'", **TEXT)), {"s": "x"}, ["s: Invalid value: \"x\": failed rule: self != 'x'"]),
    (
        whole(s=schema({"rule": "self != 'x'", "message": "no", "messageExpression": "'not ' + self"}, **TEXT)),
        {"s": "x"},
        ['s: Invalid value: "x": not x'],
    ),
    (
        whole(s=schema({"rule": "self != 'x'", "message": "no", "messageExpression": "self.substring(9)"}, **TEXT)),
        {"s": "x"},
        ['s: Invalid value: "x": no'],
    ),
    (
        whole(s=schema({"rule": "false", "reason": "FieldValueDuplicate"}, **TEXT)),
        {"s": "x"},
        ['s: Duplicate value: "x"'],
    ),
    (
        schema({"rule": "self.a > 1", "fieldPath": ".a", "reason": "FieldValueForbidden"}, **whole(a=NUMBER)),
        {"a": 1},
        ["a: Forbidden: failed rule: self.a > 1"],
    ),
    (
        schema("self.a > 1", **whole(a=NUMBER)),
        {},
        ['<nil>: Invalid value: "object": no such key: a evaluating rule: self.a > 1'],
    ),
    (
        whole(l={"type": "array", "items": schema("self < 10", **NUMBER)}),
        {"l": [1, 20]},
        ["l[1]: Invalid value: 20: failed rule: self < 10"],
    ),
    (
        whole(m={"type": "object", "additionalProperties": schema("self != ''", **TEXT)}),
        {"m": {"a": "", "b": "1"}},
        ["m[a]: Invalid value: \"\": failed rule: self != ''"],
    ),
    (whole(t=schema("self < duration('1h')", type="string", format="duration")), {"t": "30m"}, []),
    (whole(b=schema("self == b'hi'", type="string", format="byte")), {"b": "aGk="}, []),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "value", "errors"), FAILURES)
def test_a_violated_rule_is_reported_at_its_path(raw: dict[str, Any], value: Any, errors: list[str]) -> None:
    assert rule_errors(raw, value) == (errors, [])


def listed(list_type: str, *keys: str, **items: Any) -> dict[str, Any]:
    named = {"x-kubernetes-list-map-keys": [*keys]} if keys else {}
    return {"type": "array", "x-kubernetes-list-type": list_type, "items": items, **named}


PORTS = [{"a-b": 1, "v": "x"}, {"a-b": 2, "v": "y"}]
OF_LISTS = whole(
    set=listed("set", **TEXT),
    other=listed("set", **TEXT),
    numbers=listed("set", **NUMBER),
    map=listed("map", "a-b", **whole(**{"a-b": NUMBER, "v": TEXT})),
    same=listed("map", "a-b", **whole(**{"a-b": NUMBER, "v": TEXT})),
    more=listed("map", "a-b", **whole(**{"a-b": NUMBER, "v": TEXT})),
    plain=listed("atomic", **TEXT),
)
LISTS: Mapping[str, Any] = {
    "set": ["a", "b"],
    "other": ["b", "a"],
    "numbers": [1, 2],
    "map": PORTS,
    "same": PORTS[::-1],
    "more": [{"a-b": 2, "v": "z"}, {"a-b": 3, "v": "w"}],
    "plain": ["b", "a"],
}


@pytest.mark.parametrize(
    "rule",
    [
        "self.set == self.other && self.set == ['b', 'a'] && self.set == self.plain",
        "['b', 'a'] != self.set && self.plain != self.set",
        "self.set != ['a'] && self.set != ['a', 'c'] && self.set == ['a', 'a']",
        "self.numbers == [2, 1] && self.numbers != [2.0, 1.0].map(x, dyn(x))",
        "(self.set + ['c', 'a'])[2] == 'c' && size(self.set + ['c', 'a', 'c']) == 3 && self.set == ['a', 'b']",
        "self.set + self.other == ['a', 'b'] && size(self.plain + self.set) == 4 && size(['a'] + self.set) == 3",
        "dyn(self.map) == dyn(self.same) && dyn(self.map) != dyn(self.more)",
        "dyn(self.map) == self.same.filter(x, true)",
        "(dyn(self.map) + dyn(self.more)).map(x, x.v) == ['x', 'z', 'w'] && size(self.map + self.map) == 2",
        "dyn(self.map) + dyn(self.more) == dyn(self.more) + dyn(self.map.filter(x, x.v == 'x'))",
        "'a' in self.set && !('c' in self.set) && dyn(self.map[0]) in self.same && self.set.exists(x, x == 'b')",
        "self.set.size() == 2 && self.set[?5] == optional.none() && '%s'.format([self.set]) == '[\"a\", \"b\"]'",
        "sets.equivalent(self.set, self.plain) && type(self.set) == list && self.set.join() == 'ab'",
    ],
)
def test_lists_are_compared_and_added_by_their_schemas(rule: str) -> None:
    assert rule_errors(schema(rule, **OF_LISTS), LISTS) == ([], [])


def test_sets_of_objects_can_be_neither_compared_nor_added() -> None:
    of_objects = whole(set=listed("set", **whole(a=NUMBER), **{"x-kubernetes-map-type": "atomic"}))
    (error,), _ = rule_errors(schema("self.set == self.set", **of_objects), {"set": [{"a": 1}]})
    assert "runtime error: hash of unhashable type map[string]interface {} evaluating rule" in error


def test_transition_rules_read_the_old_value() -> None:
    raw = whole(
        up=schema("self >= oldSelf", **NUMBER),
        opt=schema({"rule": "oldSelf.hasValue() || self == 0", "optionalOldSelf": True}, **NUMBER),
    )
    assert rule_errors(raw, {"up": 1, "opt": 0}) == ([], [])
    assert rule_errors(raw, {"opt": 3})[0] == ["opt: Invalid value: 3: failed rule: oldSelf.hasValue() || self == 0"]
    assert rule_errors(raw, {"up": 1, "opt": 3}, {"up": 2, "opt": 2})[0] == [
        "up: Invalid value: 1: failed rule: self >= oldSelf"
    ]


def test_violations_of_unchanged_values_are_warnings() -> None:
    raw = whole(s=schema("self != 'x'", **TEXT), l={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": whole(k=TEXT, v=schema("self > 5", **NUMBER)),
    })  # fmt: skip
    old = {"s": "x", "l": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]}
    new = {"s": "x", "l": [{"k": "b", "v": 3}, {"k": "a", "v": 1}]}
    errors, warnings = rule_errors(raw, new, old)
    assert errors == ["l[0].v: Invalid value: 3: failed rule: self > 5"]
    assert warnings == [
        "l[1].v: Invalid value: 1: failed rule: self > 5",
        "s: Invalid value: \"x\": failed rule: self != 'x'",
    ]


def test_too_costly_rules_end_the_evaluation() -> None:
    raw = whole(l=schema("self.all(a, self.all(b, self.all(c, a + b + c > 0)))", "true", type="array", items=NUMBER))
    (error,) = rule_errors(raw, {"l": list(range(1, 200))})[0]
    assert "'operation cancelled: actual cost limit exceeded': no further validation rules will be run" in error

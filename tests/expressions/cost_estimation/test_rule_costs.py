"""Tests of the estimated maximum costs of validation rules; the expected values are those of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.api.field import Path
from ctrlmgr.expressions.cost_estimation.cost_estimator import estimate_cost
from ctrlmgr.extensions.rules.compiled_rules import compile_rules
from ctrlmgr.extensions.rules.max_sizes import sizes_of
from ctrlmgr.extensions.validation.rule_validation import expression_errors

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
TRUTH: Schema = {"type": "boolean"}
EITHER: Schema = {"x-kubernetes-int-or-string": True}
DURATION: Schema = {"type": "string", "format": "duration"}
DATE: Schema = {"type": "string", "format": "date"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
OBJECT: Schema = {"type": "object", "required": ["required"], "properties": {"required": TEXT, "optional": TEXT}}


def limited(schema: Schema, **limits: int | None) -> Schema:
    return {**schema, **{name: limit for name, limit in limits.items() if limit is not None}}


def text(most: int | None) -> Schema:
    return limited(TEXT, maxLength=most)


def of_list(items: Schema) -> Callable[[int | None], Schema]:
    return lambda most: limited({"type": "array", "items": items}, maxItems=most)


def of_map(values: Schema) -> Callable[[int | None], Schema]:
    return lambda most: limited({"type": "object", "additionalProperties": values}, maxProperties=most)


def texts(most: int | None) -> Schema:
    return limited({"type": "array", "items": text(most)}, maxItems=most)


def named_texts(most: int | None) -> Schema:
    return limited({"type": "object", "additionalProperties": text(most)}, maxProperties=most)


def replacing(most: int | None) -> Schema:
    return {"type": "object", "properties": {"str": text(most), "before": text(2), "after": text(4)}}


def splitting(most: int | None) -> Schema:
    return {"type": "object", "properties": {"str": text(most), "separator": text(most)}}


def cost(schema: Schema, rule: str) -> int:
    node = compile_rules({**schema, "x-kubernetes-validations": [{"rule": rule}]}, is_resource=False)
    sizes = sizes_of(schema, is_resource=False)
    assert node is not None
    assert sizes is not None
    [compiled] = node.rules
    assert compiled.expression is not None, compiled.problem
    return estimate_cost(compiled.expression.root, sizes.at).most


COSTS: list[tuple[Callable[[int | None], Schema], str, int, int, int]] = [
    (of_list(NUMBER), "self.all(x, true)", 4718591, 10, 32),
    (of_list(TEXT), "self.all(x, true)", 3145727, 20, 62),
    (of_list(TRUTH), "self.all(x, true)", 1887437, 5, 17),
    (of_list({"type": "array", "items": NUMBER}), "self.all(x, true)", 3145727, 100, 302),
    (of_list(OBJECT), "self.all(x, true)", 555128, 50, 152),
    (of_list(EITHER), "self.all(x, true)", 4718591, 10, 32),
    (of_list(DURATION), "self.all(x, true)", 2359295, 5, 17),
    (of_list(DATE), "self.all(x, true)", 725936, 15, 47),
    (of_list(MOMENT), "self.all(x, true)", 428963, 25, 77),
    (of_list(NUMBER), "self.all(x, x == 0.0)", 6291454, 6291456, 25165826),
    (of_map(NUMBER), "self.all(x, true)", 1348169, 10, 32),
    (of_map(TEXT), "self.all(x, true)", 1179647, 3, 11),
    (of_map(TRUTH), "self.all(x, true)", 943718, 100, 302),
    (of_map(EITHER), "self.all(x, true)", 1348169, 15, 47),
    (of_map(OBJECT), "self.all(x, true)", 428963, 20, 62),
    (of_map({"type": "array", "items": NUMBER}), "self.all(x, true)", 1179647, 25, 77),
    (of_map(DURATION), "self.all(x, true)", 1048577, 5, 17),
    (of_map(DATE), "self.all(x, true)", 524288, 10, 32),
    (of_map(MOMENT), "self.all(x, true)", 349526, 25, 77),
    (of_map(NUMBER), "has(self.x)", 1, 100, 1),
    (text, "self.contains('test')", 314574, 10, 5),
    (text, "self.startsWith('test')", 2, 15, 2),
    (text, "self.endsWith('test')", 2, 30, 2),
    (text, 'size(self + "hello") > size("hello")', 314578, 4, 7),
    (text, '"".matches("(((((((((())))))))))[0-9]")', 7, 10, 7),
    (text, 'self.matches("")', 1, 100, 1),
    (text, 'self == "x"', 2, 0, 1),
    (text, "self.find('[0-9]+') == ''", 629147, 10, 11),
    (text, "self.lowerAscii() == 'lower!'", 314575, 10, 6),
    (lambda most: limited({"type": "string", "format": "byte"}, maxLength=most), 'self == b"x"', 2, 0, 1),
    (lambda most: limited(EITHER, maxLength=most), "isQuantity(self)", 314574, 20, 9),
    (
        lambda most: limited({**TEXT, "enum": ["A", "B", "C", "LongValue"]}, maxLength=most),
        "self.contains('A')",
        2,
        1000,
        401,
    ),
    (of_list(NUMBER), "self[1] == 0.0", 2, 5000, 2),
    (of_list(TEXT), "self[1] == self[1]", 314577, 8, 314577),
    (of_list(EITHER), "self[0] == 5", 3, 10, 3),
    (of_list(TRUTH), "self[0] == false", 2, 25, 2),
    (of_list(OBJECT), "self[0] == null", 2, 422, 2),
    (of_list({"type": "array", "items": NUMBER}), "self[0][0] == -1.0", 3, 51, 3),
    (of_list({"type": "object", "additionalProperties": NUMBER}), "self.all(x, x.y == 25.2)", 6291452, 12, 74),
    (of_list({"type": "object", "additionalProperties": NUMBER}), "self[0].x > 2.0", 4, 3000, 4),
    (of_list(DURATION), "self[0].getHours() == 2", 4, 525, 4),
    (of_list(DATE), "self[2].getDayOfMonth() == 13", 4, 42, 4),
    (
        of_list({"type": "object", "additionalProperties": OBJECT}),
        'self.all(x, x["y"].required == "z")',
        7340027,
        10,
        72,
    ),
    (of_map(NUMBER), 'self["x"] == 0.0', 2, 0, 2),
    (of_map({"type": "integer"}), "oldSelf.size() == self.size()", 5, 10, 5),
    (of_map(MOMENT), 'self["a"] == self["b"]', 8, 7, 8),
    (of_map(DURATION), 'self["c"] == self["d"]', 8, 42, 8),
    (named_texts, "self.all(x, x.contains(self[x]))", 2752507, 10, 72),
    (texts, "self.join(' ') == 'aa bb'", 329853068905, 10, 43),
    (texts, "self.isSorted() == true", 329854432052, 10, 52),
    (replacing, "self.str.replace(self.before, self.after) == 'does not matter'", 629154, 4, 12),
    (splitting, "self.str.split(self.separator) == []", 629160, 10, 22),
]


@pytest.mark.parametrize(("schema", "rule", "unlimited", "most", "limited_"), COSTS)
def test_the_estimated_cost_of_a_rule(
    schema: Callable[[int | None], Schema], rule: str, unlimited: int, most: int, limited_: int
) -> None:
    assert (cost(schema(None), rule), cost(schema(most), rule)) == (unlimited, limited_)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("self.all(x, self.all(y, true))", 352), ("self.all(x, self.all(y, self.all(z, true)))", 3552)],
)
def test_nested_loops_multiply(rule: str, expected: int) -> None:
    assert cost(of_list(NUMBER)(10), rule) == expected
    assert cost(of_list(NUMBER)(None), rule) > 10_000_000


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("dyn(self) == [1.0]", 13),
        ("self.map(x, x * 2.0).exists(x, x > 1.0)", 213),
        ("self.filter(x, x > 1.0).size() < 3", 164),
        ("sets.contains(self, [1.0, 2.0])", 32),
        ("self.sort() == self", 214),
        ("self.distinct() == self", 214),
        ("(self.size() > 1 ? self : [1.0]) == self", 15),
        ("self.exists_one(x, x == 1.0)", 33),
    ],
)
def test_functions_that_create_values_cost_their_size(rule: str, expected: int) -> None:
    assert cost(of_list(NUMBER)(10), rule) == expected


def ruled(schema: Schema, *rules: str, **more: str) -> Schema:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **more} for rule in rules]}


def cost_errors(schema: Schema, *, is_unchanged: bool = False) -> list[tuple[str, str]]:
    """Return the path of each error below the field `s`, and the first words of its message."""
    root = {"type": "object", "properties": {"a": schema}}
    errors = expression_errors(root, Path("s"), is_unchanged=is_unchanged)
    return [(each.field, each.body.removeprefix("Forbidden: ").partition(" (")[0]) for each in errors]


DEAR = "self.all(x, self.all(y, x == y || y != 'z'))"
AT = "s.properties[a].x-kubernetes-validations[0]"
CONTRIBUTED = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
TOTAL = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of"


def test_a_too_costly_rule_is_refused_and_named() -> None:
    assert cost_errors(ruled(of_list(TEXT)(None), DEAR)) == [
        (f"{AT}.rule", "estimated rule cost exceeds budget by factor of more than 100x"),
        (f"{AT}.rule", CONTRIBUTED),
        ("s", f"{TOTAL} more than 100x"),
    ]


def test_size_limits_reduce_the_estimated_cost() -> None:
    assert cost_errors(ruled(texts(100), DEAR)) == []


@pytest.mark.parametrize(("most", "factor"), [(1850, "1.027675x"), (3000, "2.7x"), (1800, "")])
def test_a_small_excess_is_reported_precisely(most: int, factor: str) -> None:
    found = cost_errors(ruled(of_list(NUMBER)(most), "self.all(x, self.all(y, true))"))
    assert found == ([(f"{AT}.rule", f"estimated rule cost exceeds budget by factor of {factor}")] if factor else [])


def test_the_cost_in_items_is_multiplied_by_their_number() -> None:
    inner = ruled(text(1000), "self.contains('abc')")
    [(place, words)] = cost_errors(limited({"type": "array", "items": inner}, maxItems=30_000))
    assert place == "s.properties[a].items.x-kubernetes-validations[0].rule"
    assert words == "estimated rule cost exceeds budget by factor of 1.203000x"
    unlimited = cost_errors({"type": "array", "items": inner})
    assert unlimited[-1] == ("s", f"{TOTAL} 4.2x")


def test_a_message_is_evaluated_once_and_can_be_too_costly() -> None:
    schema = ruled(texts(None), "true", messageExpression="self.join(',')")
    assert cost_errors(schema)[0] == (
        f"{AT}.messageExpression",
        "estimated messageExpression cost exceeds budget by factor of more than 100x",
    )


def test_the_four_costliest_of_many_rules_are_named() -> None:
    rules = [f"self.all(x, self.all(y, {'1 + ' * each}1 > 0))" for each in range(9)]
    found = cost_errors(ruled(of_list(NUMBER)(1500), *rules))
    named = [place for place, words in found if words == CONTRIBUTED]
    assert named == [f"s.properties[a].x-kubernetes-validations[{each}].rule" for each in (8, 7, 6, 5)]


def test_an_unchanged_schema_can_have_costly_rules() -> None:
    schema = ruled(of_list(NUMBER)(3000), "self.all(x, self.all(y, true))")
    assert cost_errors(schema, is_unchanged=True) == []
    assert cost_errors(ruled(of_list(TEXT)(None), DEAR), is_unchanged=True) == [
        (f"{AT}.rule", CONTRIBUTED),
        ("s", f"{TOTAL} more than 100x"),
    ]

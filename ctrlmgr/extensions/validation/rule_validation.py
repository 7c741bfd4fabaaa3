"""Validates `x-kubernetes-validations` in a CustomResourceDefinition: syntax, types and costs of the CEL expressions.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/{validation,cel_validation}.go`
(`ValidateCustomResourceDefinitionOpenAPISchema`, `CELSchemaContext`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ctrlmgr.api.field import FieldError, Path, forbidden, internal_error, invalid
from ctrlmgr.expressions.cost_estimation.cost_estimator import estimate_cost
from ctrlmgr.expressions.cost_estimation.cost_ranges import LARGEST
from ctrlmgr.expressions.environment import Expression
from ctrlmgr.extensions.rules.compiled_rules import UNTYPED, Place, Rule, compile_rules, rules_with_places
from ctrlmgr.extensions.rules.max_sizes import Sizes, sizes_of
from ctrlmgr.extensions.structural import RULES, Raw
from ctrlmgr.extensions.validation.error_formatting import printed_rule

RULE_LIMIT: Final = 10_000_000
"""The maximum cost of one rule, for all of its values in one object (`StaticEstimatedCostLimit`)."""
SCHEMA_LIMIT: Final = 100_000_000
"""The maximum total cost of all rules of a schema (`StaticEstimatedCRDCostLimit`)."""
_NAMED: Final = 4
"""The maximum number of rules that the validation error lists if the total cost is too high."""


class _Cost(NamedTuple):
    path: Path
    what: str
    cost: int


def expression_errors(
    schema: Raw, path: Path, *, is_unchanged: bool = False, known: Sequence[FieldError] = ()
) -> Iterator[FieldError]:
    """Yield the errors of CEL rules and message expressions: compilation errors, unavailable old values, high costs.

    If the schema is unchanged, the cost of a single rule causes no error, because the rule was accepted before. If the
    schema has other errors (`known`), its rules are not checked.
    """
    node = compile_rules(schema)
    if node is None:
        return
    costs: list[_Cost] = []
    sizes: dict[int, Sizes | None] = {}
    for place, rule in rules_with_places(node, path):
        if any(_is_within(each.field, place.schema_path) for each in known):
            continue
        own = id(place.node)
        if own not in sizes:
            sizes[own] = sizes_of(place.node.raw, is_resource=place.node.is_resource)
        found = list(_costs(rule, place, sizes[own]))
        costs += found
        if not is_unchanged:
            yield from _cost_errors(found)
        yield from _rule_errors(rule, place)
    yield from _total_errors(costs, path)


def _is_within(field: str, path: Path) -> bool:
    return field.startswith(path) and field[len(path) : len(path) + 1] in ("", ".", "[")


def _costs(rule: Rule, place: Place, sizes: Sizes | None) -> Iterator[_Cost]:
    """Yield the cost of a CEL rule for all its values in an object, and the cost of the rule's message expression.

    The message expression of a rule is evaluated only once.
    """
    if sizes is None or rule.expression is None:
        return
    times = sizes.cardinality if place.cardinality is None else place.cardinality
    yield _Cost(place.path.child("rule"), "rule", min(_cost(rule.expression, sizes) * times, LARGEST))
    if rule.telling is not None:
        yield _Cost(place.path.child("messageExpression"), "messageExpression", _cost(rule.telling, sizes))


def _cost(expression: Expression, sizes: Sizes) -> int:
    return estimate_cost(expression.root, sizes.at).most


def _cost_errors(costs: list[_Cost]) -> Iterator[FieldError]:
    for each in costs:
        if each.cost > RULE_LIMIT:
            yield forbidden(each.path, _exceeds(f"estimated {each.what} cost", each.cost, RULE_LIMIT))


def _total_errors(costs: list[_Cost], path: Path) -> Iterator[FieldError]:
    total = min(sum(each.cost for each in costs), LARGEST)
    if total <= SCHEMA_LIMIT:
        return
    dear = sorted((each for each in costs if each.cost >= SCHEMA_LIMIT // 100), key=lambda each: -each.cost)
    for each in dear[:_NAMED]:
        words = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        yield forbidden(each.path, words)
    what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    yield forbidden(path, _exceeds(what, total, SCHEMA_LIMIT))


_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


def _exceeds(what: str, cost: int, limit: int) -> str:
    return f"{what} exceeds budget by factor of {_factor(cost / limit)} {_ADVICE}"


def _factor(factor: float) -> str:
    if factor > 100:
        return "more than 100x"
    return f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"


def _rule_errors(rule: Rule, place: Place) -> Iterator[FieldError]:
    at, unrelated = place.path, place.unrelated
    if rule.problem == UNTYPED:
        detail = f"failed to construct type information for {RULES} rules: {UNTYPED}"
        yield internal_error(place.schema_path.child(RULES), f"internal error: {detail}")
    elif rule.problem:
        yield invalid(at.child("rule"), printed_rule(rule.raw), rule.problem)
    if rule.telling_problem:
        yield invalid(at.child("messageExpression"), printed_rule(rule.raw), rule.telling_problem)
    if rule.may_be_new and not rule.uses_old and (rule.raw.get("rule") or "").strip():
        yield invalid(at.child("optionalOldSelf"), True, "may not be set if oldSelf is not used in rule")
    if rule.uses_old and unrelated:
        words = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {unrelated}"
        yield invalid(at.child("rule"), rule.raw.get("rule"), words)

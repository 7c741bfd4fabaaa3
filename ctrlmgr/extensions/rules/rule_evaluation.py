"""Evaluates a schema's rules on a value and its parts.

Guarantees: a violation by an unchanged value only causes a warning, unless the rule compares with the old value. All
rules of an object share one cost budget. After the budget is exceeded, no more rules are evaluated.

Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from ctrlmgr.api.field import ROOT, FieldError, Path, duplicate, forbidden, invalid, required
from ctrlmgr.expressions.costs import MOST_STEPS, PER_CALL_LIMIT, TOTAL_LIMIT
from ctrlmgr.expressions.values import NONE, CostExceeded, EvalError, Optional
from ctrlmgr.extensions.rules.compiled_rules import Node, Rule
from ctrlmgr.extensions.rules.schema_types import visible
from ctrlmgr.extensions.schema_validation.go_json_values import identity, same, shown_value
from ctrlmgr.extensions.structural import MISSING
from ctrlmgr.work_budget import bounded

_LONGEST_MESSAGE: Final = 5 * 1024
_MOST_STEPS: Final = 2 * MOST_STEPS
"""The maximum number of steps that all rules of one object may take together."""
_ROOT: Final = "<nil>"


class _Stop(Exception):
    """Raised internally to end the evaluation, so that no further rules are evaluated."""


def evaluate_rules(
    node: Node, value: Any, old: Any = MISSING, *, path: Path = ROOT, warnings: list[str] | None = None
) -> list[FieldError]:
    """Return the violations of a schema's rules by a value at `path`; `old` is the value before the write.

    Violations by values that the write does not change are added to `warnings`.
    """
    run = _Run([] if warnings is None else warnings)
    with suppress(_Stop), bounded(_MOST_STEPS):
        run.node(node, value, old, path)
    return run.errors


class _Run:
    def __init__(self, warnings: list[str]) -> None:
        self.errors: list[FieldError] = []
        self._warnings = warnings
        self._left = TOTAL_LIMIT

    def node(self, node: Node, value: Any, old: Any, path: Path) -> None:
        if value is None:
            return
        if node.rules:
            self._rules(node, value, old, path)
        if type(value) is dict:
            self._fields(node, value, old if type(old) is dict else {}, path)
        elif type(value) is list and node.items is not None:
            before = _by_key(node, old) if type(old) is list else {}
            for at, each in enumerate(value):
                self.node(node.items, each, before.get(_key(node, each), MISSING), path.at(at))

    def _fields(self, node: Node, value: Mapping[str, Any], old: Mapping[str, Any], path: Path) -> None:
        for name in sorted(value):
            below = node.properties.get(name)
            if below is not None:
                self.node(below, value[name], old.get(name, MISSING), path.child(name))
            elif node.additional is not None and name not in (node.raw.get("properties") or {}):
                self.node(node.additional, value[name], old.get(name, MISSING), path.key(name))

    def _rules(self, node: Node, value: Any, old: Any, path: Path) -> None:
        is_new = old is MISSING or old is None
        seen = visible(value, node.raw, is_resource=node.is_resource)
        before = None if is_new else visible(old, node.raw, is_resource=node.is_resource)
        is_unchanged = not is_new and same(value, old)
        for rule in node.rules:
            if rule.uses_old and is_new and not rule.may_be_new:
                continue
            known = {"self": seen, "oldSelf": before}
            if rule.may_be_new:
                known["oldSelf"] = NONE if is_new else Optional(True, before)
            for error in self._rule(rule, node, known, value, path):
                if is_unchanged and not rule.uses_old:
                    self._warnings.append(f"{error.field}: {error.body}")
                else:
                    self.errors.append(error)

    def _rule(self, rule: Rule, node: Node, known: Mapping[str, Any], value: Any, path: Path) -> Iterator[FieldError]:
        at, kind = path or _ROOT, node.raw.get("type") or ""
        if rule.expression is None:
            if rule.problem:
                yield invalid(at, kind, f"rule compile error: {rule.problem}")
            return
        try:
            result, cost = rule.expression.evaluate(known, min(PER_CALL_LIMIT, self._left))
        except CostExceeded as error:
            words = "no further validation rules will be run due to call cost exceeds limit for rule"
            self.errors.append(invalid(at, kind, f"'{error}': {words}: {rule.text}"))
            raise _Stop from error
        except EvalError as error:
            yield invalid(at, kind, _unevaluated(error, rule))
            return
        self._left -= cost
        if result is not True:
            yield self._failure(rule, known, value, path)

    def _failure(self, rule: Rule, known: Mapping[str, Any], value: Any, path: Path) -> FieldError:
        at = (path.child(rule.place) if path else Path(rule.place)) if rule.place else path
        message, place = self._message(rule, known), at or _ROOT
        reason = rule.raw.get("reason")
        if reason == "FieldValueRequired":
            return required(place, message)
        if reason == "FieldValueForbidden":
            return forbidden(place, message)
        if reason == "FieldValueDuplicate":
            return duplicate(place, shown_value(value))
        if isinstance(value, dict | list):
            return FieldError("FieldValueInvalid", str(place), f"Invalid value: {message}")
        return invalid(place, shown_value(value), message)

    def _message(self, rule: Rule, known: Mapping[str, Any]) -> str:
        message = ""
        if rule.telling is not None:
            try:
                found, cost = rule.telling.evaluate(known, min(PER_CALL_LIMIT, self._left))
            except (EvalError, CostExceeded):
                found, cost = "", 0
            self._left -= cost
            message = str(found).strip()
        if not message or "\n" in message or len(message.encode()) > _LONGEST_MESSAGE:
            message = str(rule.raw.get("message") or "").strip()
        return message or f"failed rule: {rule.text}"


def _unevaluated(error: EvalError, rule: Rule) -> str:
    if str(error).startswith("no such overload"):
        words = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {words}: {rule.text}"
    return f"{error} evaluating rule: {rule.text}"


def _key(node: Node, item: Any) -> Any:
    if node.keys is None or type(item) is not dict:
        return None
    return tuple(identity(item[key]) if key in item else None for key in node.keys)


def _by_key(node: Node, old: list[Any]) -> Mapping[Any, Any]:
    return {} if node.keys is None else {_key(node, each): each for each in reversed(old) if type(each) is dict}

"""Finds the exact errors of a value, with the messages of Kubernetes' validator.

The error validator is the slow path, for values that `fast_validator` refuses. If a `Correlation` is given, errors of
unchanged parts are ignored, field by field (KEP-4008).

Source: kube-openapi `pkg/validation/validate/{schema,type,validator,schema_props,object_validator,slice_validator}.go`,
apiextensions-apiserver `pkg/apiserver/validation/ratcheting.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlmgr.extensions.schema_validation.correlated_value import Correlation
from ctrlmgr.extensions.schema_validation.fast_validator import accepting
from ctrlmgr.extensions.schema_validation.go_json_values import is_int, is_integral
from ctrlmgr.extensions.schema_validation.result import (
    FoundError,
    Result,
    faulty,
    missing,
    not_listed,
    over_long,
    over_many,
    placeless,
    wrong_type,
)
from ctrlmgr.extensions.schema_validation.schema_node import Node
from ctrlmgr.extensions.structural import TYPE_META
from ctrlmgr.golang.go_text import quote
from ctrlmgr.work_budget import TooMuchWork, spend

_STEPS: Final = 30
"""The maximum number of steps for the validation of one value."""


def explain(
    node: Node, value: Any, correlation: Correlation | None = None, path: str = "", *, counts: bool = False
) -> Result:
    """Validate a value; `path` is its path within the whole value that is validated.

    If `counts` is true, the result contains the number of valid parts, which the caller needs to choose the best of
    several alternatives. If `counts` is false, valid parts are skipped. Raises `TooMuchWork` if the validation exceeds
    the work budget.
    """
    spend(_STEPS)
    result = _explain(node, value, correlation, path, counts)
    if correlation is not None and not result.is_valid and correlation.is_unchanged:
        result.errors = {}
    return result


def _explain(node: Node, value: Any, correlation: Correlation | None, path: str, counts: bool) -> Result:
    if type(value) is int and not is_int(value):
        value = float(value)
    result = Result()
    if node.types or node.format:
        _check_type(node, value, path, result)
        result.matches += value is not None
    if value is None:
        if not (node.types or node.format):
            result.matches += 1
        _check_enum(node, value, path, result)
        return result
    result.merge(_check_junctors(node, value, path))
    result.matches += 1
    if type(value) is str:
        _check_string(node, value, path, result)
    elif type(value) in (int, float):
        _check_number(node, value, path, result)
    elif type(value) is list:
        result.merge(_check_list(node, value, correlation, path, counts))
        result.matches += 1
    _check_enum(node, value, path, result)
    result.matches += 1
    if type(value) is dict:
        result.merge(_check_object(node, value, correlation, path, counts))
        result.matches += 1
    result.matches += 1
    return result


_TYPES: Mapping[type, tuple[str, str]] = {
    bool: ("boolean", ""),
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}
"""Return the type of a decoded value, and the format that belongs to this type."""


def _check_type(node: Node, value: Any, path: str, result: Result) -> None:
    if value is None:
        if node.types and not node.nullable:
            result.add(wrong_type(path, node.shown_types, "null"))
        else:
            result.matches += 1
        return
    found, form = _TYPES[type(value)]
    is_numeric = "number" in node.types or "integer" in node.types
    is_right = found in node.types or (
        "integer" in node.types and is_integral(value) if found == "number" else found == "integer" and is_numeric
    )
    if type(value) not in (str, list):
        if node.format and not (is_right or form == node.format):
            result.add(wrong_type(path, node.format, form))
            return
    elif node.format and not is_numeric:
        result.matches += 1
        return
    if is_right:
        result.matches += 1
    else:
        result.add(wrong_type(path, node.shown_types, found))


def _check_enum(node: Node, value: Any, path: str, result: Result) -> None:
    if node.enum and not node.listed.has(value):
        result.add(not_listed(path, value, node.listed.supported))


def _check_string(node: Node, value: str, path: str, result: Result) -> None:
    found = _string_fault(node, value, path)
    if found is not None:
        result.add(found)
    result.matches += 1
    if node.format_check is not None:
        if not node.format_check(value):
            result.add(wrong_type(path, node.format, value))
        result.matches += 1


def _string_fault(node: Node, value: str, path: str) -> FoundError | None:
    if node.longest is not None and len(value) > node.longest:
        return over_long(path, node.longest)
    if node.shortest is not None and len(value) < node.shortest:
        return faulty(path, f"{path} in body should be at least {node.shortest} chars long", value)
    return _pattern_fault(node, value, path) if node.pattern else None


def _pattern_fault(node: Node, value: str, path: str) -> FoundError | None:
    try:
        if node.regexp.search(value):
            return None
    except TooMuchWork:
        return faulty(path, f"{path} in body takes too many steps to match '{node.pattern}'", value)
    return faulty(path, f"{path} in body should match '{node.pattern}'", value)


def _check_number(node: Node, value: float, path: str, result: Result) -> None:
    for fault in node.numbers.faults(value):
        words = fault.words.replace("{path}", path)
        result.add(faulty(path, words, fault.value) if fault.has_field else placeless(words))
    result.matches += 2


def _check_list(node: Node, value: list[Any], correlation: Correlation | None, path: str, counts: bool) -> Result:
    result = Result()
    if node.items is not None:
        for at, each in enumerate(value):
            if result.is_full:
                break
            if counts or not accepting(node.items)(each):
                below = None if correlation is None else correlation.index(at)
                result.merge(explain(node.items, each, below, f"{path}[{at}]", counts=counts))
    size = len(value)
    if node.least_items is not None and size < node.least_items:
        result.add(faulty(path, f"{path} in body should have at least {node.least_items} items", size))
    if node.most_items is not None and size > node.most_items:
        result.add(over_many(path, "items", size, node.most_items))
    result.matches += 1
    return result


def _check_object(
    node: Node, value: dict[str, Any], correlation: Correlation | None, path: str, counts: bool
) -> Result:
    result = Result()
    size = len(value)
    if node.least_properties is not None and size < node.least_properties:
        result.add(faulty(path, f"{path} in body should have at least {node.least_properties} properties", size))
    if node.most_properties is not None and size > node.most_properties:
        result.add(over_many(path, "properties", size, node.most_properties))
    for name, each in value.items():
        if result.is_full:
            break
        below = node.properties.get(name)
        if below is not None:
            at = f"{path}.{name}" if path else name
        elif node.forbids_others:
            result.add(faulty(path, f"{path}.{name} in body is a forbidden property", name))
            continue
        elif node.additional is not None:
            below, at = node.additional, f"{path}.{name}"
        else:
            continue
        if counts or not accepting(below)(each):
            result.merge(explain(below, each, _correlated(correlation, name, path), at, counts=counts))
    for name in node.required:
        if name not in value:
            result.add(missing(f"{path}.{name}"))
    return result


def _correlated(correlation: Correlation | None, name: str, path: str) -> Correlation | None:
    """Return the correlation of a field.

    The result is None for kind and apiVersion of the whole object, which are always validated.
    """
    if correlation is None or (not path and name in TYPE_META):
        return None
    return correlation.key(name)


def _check_junctors(node: Node, value: Any, path: str) -> Result:
    result = Result()
    if node.any_of:
        _check_any(node.any_of, value, path, result)
    if node.one_of:
        _check_one(node.one_of, value, path, result)
    if node.all_of:
        _check_all(node.all_of, value, path, result)
    if node.not_ is not None and explain(node.not_, value, None, path, counts=True).is_valid:
        result.add(placeless(f"{quote(path)} must not validate the schema (not)"))
    result.matches += 1
    return result


def _check_any(nodes: Sequence[Node], value: Any, path: str, result: Result) -> None:
    best: Result | None = None
    for node in nodes:
        found = explain(node, value, None, path, counts=True)
        if found.is_valid:
            result.merge(found)
            return
        if best is None or found.matches > best.matches:
            best = found
    result.add(placeless(f"{quote(path)} must validate at least one schema (anyOf)"))
    if best is not None:
        result.merge(best)


def _check_one(nodes: Sequence[Node], value: Any, path: str, result: Result) -> None:
    best: Result | None = None
    valid: list[Result] = []
    for node in nodes:
        found = explain(node, value, None, path, counts=True)
        if found.is_valid:
            valid.append(found)
        elif not valid and (best is None or found.matches > best.matches):
            best = found
    if len(valid) == 1:
        result.merge(valid[0])
        return
    how = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
    result.add(placeless(f"{quote(path)} must validate one and only one schema (oneOf). {how}"))
    if not valid and best is not None:
        result.merge(best)


def _check_all(nodes: Sequence[Node], value: Any, path: str, result: Result) -> None:
    valid = 0
    for node in nodes:
        found = explain(node, value, None, path, counts=True)
        valid += found.is_valid
        result.merge(found)
    if valid != len(nodes):
        result.add(
            placeless(f"{quote(path)} must validate all the schemas (allOf)" + (". None validated" * (not valid)))
        )

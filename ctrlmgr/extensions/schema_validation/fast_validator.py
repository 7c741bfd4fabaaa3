"""The first check of every value: returns quickly whether the value is valid, without errors.

Guarantees: the fast check accepts exactly the values for which `error_validator` finds no errors. A schema is compiled
once to closures, one for each type of JSON value; absent keywords cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ctrlmgr.extensions.schema_validation.go_json_values import HIGHEST, LOWEST, is_integral
from ctrlmgr.extensions.schema_validation.schema_node import Node
from ctrlmgr.work_budget import spend

Check: TypeAlias = Callable[[Any], bool]


def _always(value: Any) -> bool:
    return True


def _never(value: Any) -> bool:
    return False


def _compile(node: Node) -> Check:
    """Return the function that checks the values of a schema."""
    string, number, whole = _strings(node), _floats(node), _integers(node)
    large = number

    def integer(value: int) -> bool:
        return whole(value) if LOWEST <= value <= HIGHEST else large(float(value))

    checks: Mapping[type, Check] = {
        str: string,
        int: integer if whole is not _always or number is not _always else _always,
        float: number,
        bool: _booleans(node),
        list: _lists(node),
        dict: _objects(node),
        type(None): _nulls(node),
    }
    if all(check is _always for check in checks.values()):
        return _always

    def accept(value: Any) -> bool:
        return checks[type(value)](value)

    return accept


def accepting(node: Node) -> Check:
    """Return the function that checks the values of a schema; the function is compiled only once."""
    if node.accepts is None:
        node.accepts = _compile(node)
    return node.accepts


def _together(checks: Sequence[Check]) -> Check:
    kept = [check for check in checks if check is not _always]
    if not kept:
        return _always
    if _never in kept:
        return _never
    if len(kept) == 1:
        return kept[0]
    if len(kept) == 2:  # the most common case
        first, second = kept
        return lambda value: first(value) and second(value)
    return lambda value: all(check(value) for check in kept)


def _nulls(node: Node) -> Check:
    if node.enum or (node.types and not node.nullable):
        return _never
    return _always


def _is_type(node: Node, *types: str) -> bool:
    return not (node.types or node.format) or any(each in node.types for each in types)


def _skips_type(node: Node) -> bool:
    """Return whether strings and lists pass the type check.

    As in Kubernetes, numbers pass if the schema has a format that is not a format of numbers.
    """
    return bool(node.format) and "number" not in node.types and "integer" not in node.types


def _enum(node: Node) -> Check:
    if not node.enum:
        return _always
    return node.listed.has


def _string_enum(node: Node) -> Check:
    if not node.enum:
        return _always
    values = frozenset(each for each in node.enum if type(each) is str)
    return values.__contains__


def _strings(node: Node) -> Check:
    if not (_is_type(node, "string") or _skips_type(node)):
        return _never
    checks = [_string_enum(node)]
    shortest, longest = node.shortest, node.longest
    if shortest is not None and shortest > 0:
        checks.append(lambda value: len(value) >= shortest)
    if longest is not None:
        checks.append(lambda value: len(value) <= longest)
    if node.pattern:
        checks.append(node.matches)
    checks += [node.format_check or _always, _junctors(node)]
    return _together(checks)


def _integers(node: Node) -> Check:
    if not _is_type(node, "integer", "number"):
        return _never
    return _together([_numbers(node), _enum(node), _junctors(node)])


def _floats(node: Node) -> Check:
    if not _is_type(node, "integer", "number"):
        return _never
    needs_integral = bool(node.types) and "number" not in node.types
    checks = [is_integral if needs_integral else _always, _numbers(node), _enum(node), _junctors(node)]
    return _together(checks)


def _numbers(node: Node) -> Check:
    rules = node.numbers
    if rules.is_empty and rules.type != "integer":
        return _always
    if rules.is_empty:
        return lambda value: type(value) is int or next(rules.faults(value), None) is None
    return lambda value: next(rules.faults(value), None) is None


def _booleans(node: Node) -> Check:
    return _together([_enum(node), _junctors(node)]) if _is_type(node, "boolean") else _never


def _lists(node: Node) -> Check:
    if not (_is_type(node, "array") or _skips_type(node)):
        return _never
    checks: list[Check] = []
    least, most = node.least_items, node.most_items
    if least is not None and least > 0:
        checks.append(lambda value: len(value) >= least)
    if most is not None:
        checks.append(lambda value: len(value) <= most)
    if node.items is not None and (item := accepting(node.items)) is not _always:
        checks.append(lambda value: all(map(item, value)))
    return _together([*checks, _enum(node), _junctors(node)])


def _objects(node: Node) -> Check:
    if not _is_type(node, "object"):
        return _never
    checks: list[Check] = []
    least, most, required = node.least_properties, node.most_properties, tuple(node.required)
    if least is not None and least > 0:
        checks.append(lambda value: len(value) >= least)
    if most is not None:
        checks.append(lambda value: len(value) <= most)
    if required:
        checks.append(lambda value: all(name in value for name in required))
    return _together([*checks, _fields(node), _enum(node), _junctors(node)])


def _fields(node: Node) -> Check:
    fields = {name: accepting(each) for name, each in node.properties.items()}
    others = _never if node.forbids_others else accepting(node.additional) if node.additional else _always
    if others is _always:
        checked = {name: check for name, check in fields.items() if check is not _always}
        if not checked:
            return _always
        fields = checked

    def accept(value: dict[str, Any]) -> bool:
        for name, each in value.items():
            check = fields.get(name, others)
            if check is not _always and not check(each):
                return False
        return True

    return accept


def _junctors(node: Node) -> Check:
    checks = [accepting(each) for each in node.all_of]
    if node.any_of:
        checks.append(_any([accepting(each) for each in node.any_of]))
    if node.one_of:
        checks.append(_one([accepting(each) for each in node.one_of]))
    if node.not_ is not None:
        negated = accepting(node.not_)
        checks.append(lambda value: not negated(value))
    return _together(checks)


def _any(checks: Sequence[Check]) -> Check:
    def accept(value: Any) -> bool:
        spend(len(checks))
        return any(check(value) for check in checks)

    return accept


def _one(checks: Sequence[Check]) -> Check:
    def accept(value: Any) -> bool:
        spend(len(checks))
        return sum(check(value) for check in checks) == 1

    return accept

"""Compiles the rules of a schema to a tree of the schemas that have rules or contain schemas with rules.

Source: apiextensions-apiserver `pkg/apiserver/schema/cel/{compilation,validation}.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ctrlmgr.api.field import Path
from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.expressions.environment import Environment, Expression
from ctrlmgr.expressions.expression_parser import children
from ctrlmgr.expressions.expression_tree import Ident
from ctrlmgr.expressions.source import CompileError
from ctrlmgr.expressions.types import BOOL, STRING, Type, optional_of
from ctrlmgr.extensions.paths.field_path import resolve
from ctrlmgr.extensions.rules.schema_types import Fields, fields_of, is_embedded
from ctrlmgr.extensions.structural import LIST_MAP_KEYS, LIST_TYPE, RULES, Raw, Structural, single_items

_OLD: Final = "oldSelf"
UNTYPED: Final = "unable to convert structural schema to CEL declarations"
"""The error of a rule in a schema whose values have no known type."""


@dataclass(slots=True)
class Rule:
    """One rule.

    The field `problem` is the compilation error of the rule, and `telling_problem` is the compilation error of its
    message expression. `problem` and `telling_problem` are empty if the rule has no error.
    """

    raw: Raw
    expression: Expression | None = None
    telling: Expression | None = None
    problem: str = ""
    telling_problem: str = ""
    uses_old: bool = False
    place: str = ""
    """The field path for which errors are reported, relative to the rule's schema."""

    @property
    def text(self) -> str:
        """The string that identifies the rule in errors: its message or, without a message, its expression."""
        return str(self.raw.get("message") or "").strip() or str(self.raw.get("rule") or "").strip()

    @property
    def may_be_new(self) -> bool:
        """Return whether the rule also applies to new values, although its expression uses the old value."""
        return bool(self.raw.get("optionalOldSelf"))


@dataclass(slots=True)
class Node:
    """The compiled rules of a schema that has rules, or that contains schemas with rules."""

    raw: Raw
    is_resource: bool
    rules: list[Rule] = field(default_factory=list)
    properties: dict[str, Node] = field(default_factory=dict)
    items: Node | None = None
    additional: Node | None = None

    @property
    def keys(self) -> list[str] | None:
        """The keys that identify list items; None if the list is not a map."""
        return list(self.raw.get(LIST_MAP_KEYS) or ()) if self.raw.get(LIST_TYPE) == "map" else None


def compile_rules(raw: Raw, *, is_resource: bool = True) -> Node | None:
    """Return the compiled rules of a schema; None if the schema has no rules at any depth."""
    node = Node(raw, is_resource)
    for name, each in (raw.get("properties") or {}).items():
        below = compile_rules(each, is_resource=is_embedded(each))
        if below is not None:
            node.properties[name] = below
    items, additional = single_items(raw), raw.get("additionalProperties")
    if items is not None:
        node.items = compile_rules(items, is_resource=is_embedded(items))
    if isinstance(additional, Mapping):
        node.additional = compile_rules(additional, is_resource=is_embedded(additional))
    node.rules = _compiled(raw, is_resource)
    return node if node.rules or node.properties or node.items or node.additional else None


def _compiled(raw: Raw, is_resource: bool) -> list[Rule]:
    rules = raw.get(RULES) or ()
    if not rules:
        return []
    fields = Fields()
    self_type = fields.declare(raw, is_resource=is_resource)
    if self_type is None:
        return [Rule(rules[0], problem=UNTYPED)]
    return [_rule(each, raw, self_type, fields, is_resource) for each in rules]


def _rule(raw: Raw, schema: Raw, self_type: Type, fields: Fields, is_resource: bool) -> Rule:
    rule = Rule(raw)
    old = optional_of(self_type) if rule.may_be_new else self_type
    environment = Environment({"self": self_type, _OLD: old}, FUNCTIONS, fields)
    rule.expression, rule.problem = _one(environment, raw.get("rule") or "", BOOL)
    telling = raw.get("messageExpression") or ""
    if telling.strip():
        rule.telling, rule.telling_problem = _one(environment, telling, STRING)
    rule.uses_old = rule.expression is not None and _names_old(rule.expression)
    rule.place = _place(raw.get("fieldPath") or "", schema, is_resource)
    return rule


_WRONG: Final = {BOOL: "cel expression must evaluate to a bool", STRING: "messageExpression must evaluate to a string"}


def _one(environment: Environment, source: str, expected: Type) -> tuple[Expression | None, str]:
    if not source.strip():
        return None, ""
    try:
        expression = environment.compile(source)
    except CompileError as error:
        words = "compilation failed" if expected is BOOL else "messageExpression compilation failed"
        return None, f"{words}: {error}"
    return (expression, "") if expression.type == expected else (None, _WRONG[expected])


def _names_old(expression: Expression) -> bool:
    waiting = [expression.root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Ident) and node.name == _OLD:
            return True
        waiting += children(node)
    return False


def _place(text: str, schema: Raw, is_resource: bool) -> str:
    if not text:
        return ""
    try:
        path, _ = resolve(text, Structural({**schema, "properties": dict(fields_of(schema, is_resource=is_resource))}))
    except ValueError:
        return ""
    return str(path)


class Place(NamedTuple):
    """The position of a schema with rules within the whole schema."""

    node: Node
    path: Path
    unrelated: str = ""
    """The path of the list around this schema whose items have no corresponding old items; None if there is none."""
    cardinality: int | None = 1
    """The maximum number of values of this schema in an object; None if there is no limit."""

    @property
    def schema_path(self) -> Path:
        """Return the path of the schema; `path` is the path of one of its rules."""
        return Path(self.path.rpartition(f".{RULES}[")[0])


def rules_with_places(root: Node, path: Path) -> Iterator[tuple[Place, Rule]]:
    """Yield each rule with its path and the position of its schema.

    Nested schemas precede the schema that contains them.
    """
    yield from _rules(Place(root, path))


def _rules(place: Place) -> Iterator[tuple[Place, Rule]]:
    node, path = place.node, place.path
    count = _times(place.cardinality, node.raw)
    for name, each in node.properties.items():
        yield from _rules(Place(each, path.child("properties").key(name), place.unrelated, count))
    if node.items is not None:
        lost = place.unrelated or ("" if node.keys is not None else str(path))
        yield from _rules(Place(node.items, path.child("items"), lost, count))
    if node.additional is not None:
        yield from _rules(Place(node.additional, path.child("additionalProperties"), place.unrelated, count))
    for at, rule in enumerate(node.rules):
        yield place._replace(path=path.child(RULES).at(at)), rule


def _times(count: int | None, raw: Raw) -> int | None:
    """Return the maximum number of values that nested schemas may have in an object.

    The argument `count` is the maximum number of values of the containing schema (`extractMaxElements`).
    """
    kind = raw.get("type")
    if kind == "array":
        limit = raw.get("maxItems")
    elif kind == "object" and raw.get("additionalProperties") is not None:
        limit = raw.get("maxProperties")
    else:
        return count
    return None if count is None or limit is None else count * max(int(limit), 0)

"""What is wrong with the expressions of a definition's rules.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`
(`ValidateCustomResourceDefinitionOpenAPISchema`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.extensions.rules.compiled import Rule, compile_rules, rules_with_paths
from ctrlmgr.extensions.structural import Raw
from ctrlmgr.extensions.validation.printed import printed_rule


def expression_errors(schema: Raw, path: Path) -> Iterator[FieldError]:
    """Yield an error for every rule and every message that does not compile, or looks at what it cannot have."""
    node = compile_rules(schema)
    for at, _, rule, unrelated in rules_with_paths(node, path) if node is not None else ():
        yield from _rule_errors(rule, at, unrelated)


def _rule_errors(rule: Rule, at: Path, unrelated: str) -> Iterator[FieldError]:
    if rule.problem:
        yield invalid(at.child("rule"), printed_rule(rule.raw), rule.problem)
    if rule.telling_problem:
        yield invalid(at.child("messageExpression"), printed_rule(rule.raw), rule.telling_problem)
    if rule.may_be_new and not rule.uses_old and (rule.raw.get("rule") or "").strip():
        yield invalid(at.child("optionalOldSelf"), True, "may not be set if oldSelf is not used in rule")
    if rule.uses_old and unrelated:
        words = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {unrelated}"
        yield invalid(at.child("rule"), rule.raw.get("rule"), words)

"""Compiles label selectors in specs (the type LabelSelector of meta/v1), and formats them.

Source: apimachinery `pkg/apis/meta/v1/helpers.go`, `LabelSelectorAsSelector`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import Path, tentatively
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector, Requirement
from ctrlmgr.engine.validation.label_validation import validate_label_selector

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def selector_of(selector: Mapping[str, Any]) -> LabelSelector | None:
    """Return the compiled LabelSelector; None if the LabelSelector is invalid.

    An empty LabelSelector selects everything.
    """
    if tentatively(lambda: validate_label_selector(selector, Path())):
        return None
    pairs = (selector.get("matchLabels") or {}).items()
    equal = [Requirement(key, "=", (value,)) for key, value in pairs]
    return LabelSelector([*equal, *(_requirement(each) for each in selector.get("matchExpressions") or ())])


def _requirement(expression: Mapping[str, Any]) -> Requirement:
    return Requirement(expression["key"], _OPERATORS[expression["operator"]], tuple(expression.get("values") or ()))


def selector_text(selector: Mapping[str, Any]) -> str:
    """Format a LabelSelector as `labels.Selector.String` does: `a=b,c in (d,e),!f`, sorted by key."""
    found = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    found += [(each["key"], _expression_text(_requirement(each))) for each in selector.get("matchExpressions") or ()]
    return ",".join(text for _, text in sorted(found))


def _expression_text(requirement: Requirement) -> str:
    key, operator, values = requirement
    if operator == "exists":
        return key
    if operator == "!":
        return f"!{key}"
    return f"{key} {operator} ({','.join(sorted(values))})"


def selector_shown(selector: Mapping[str, Any] | None) -> str:
    """Format a LabelSelector as Go prints a pointer to it (`LabelSelector.String`)."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key', '')},Operator:{each.get('operator', '')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )

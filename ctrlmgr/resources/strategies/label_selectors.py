"""Selectors as specs hold them (meta/v1 LabelSelector), made into what matches labels.

Rules come from apimachinery's `pkg/apis/meta/v1/helpers.go`, `LabelSelectorAsSelector`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import Path
from ctrlmgr.resources.selectors.labels import LabelSelector, Requirement
from ctrlmgr.resources.validation.labels import validate_label_selector

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def selector_of(selector: Mapping[str, Any]) -> LabelSelector | None:
    """Return what a LabelSelector selects, None if it is not valid; an empty one selects everything."""
    if validate_label_selector(selector, Path()):
        return None
    pairs = (selector.get("matchLabels") or {}).items()
    requirements = [Requirement(key, "=", (value,)) for key, value in pairs]
    for each in selector.get("matchExpressions") or ():
        requirements.append(Requirement(each["key"], _OPERATORS[each["operator"]], tuple(each.get("values") or ())))
    return LabelSelector(requirements)


def selector_text(selector: Mapping[str, Any]) -> str:
    """Write a LabelSelector as `labels.Selector.String` does: `a=b,c in (d,e),!f`; by key."""
    found = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        found.append((each["key"], _expression_text(each["key"], each["operator"], each.get("values") or ())))
    return ",".join(text for _, text in sorted(found))


def _expression_text(key: str, operator: str, values: list[str]) -> str:
    if operator == "Exists":
        return key
    if operator == "DoesNotExist":
        return f"!{key}"
    return f"{key} {_OPERATORS[operator]} ({','.join(sorted(values))})"

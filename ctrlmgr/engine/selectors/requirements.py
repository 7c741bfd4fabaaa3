"""Converts selectors to the form in which authorizers receive them: keys, operators and values.

Source: apiserver `pkg/endpoints/filters/authorization.go`.
"""

from __future__ import annotations

from ctrlmgr.authorization.attributes import Requirement
from ctrlmgr.engine.selectors.field_selector_parser import FieldSelector
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector

_IN, _NOT_IN = "In", "NotIn"
_OPERATORS = {
    **dict.fromkeys(("=", "==", "in"), _IN),
    **dict.fromkeys(("!=", "notin"), _NOT_IN),
    "exists": "Exists",
    "!": "DoesNotExist",
}


def field_requirements(selector: FieldSelector) -> tuple[Requirement, ...]:
    """Return the terms of a field selector."""
    terms = selector.terms
    return tuple(Requirement(term.field, _NOT_IN if term.negated else _IN, (term.value,)) for term in terms)


def label_requirements(selector: LabelSelector) -> tuple[Requirement, ...]:
    """Return those terms of a label selector that authorizers support; numeric comparisons are left out."""
    known = (each for each in selector.requirements if each.operator in _OPERATORS)
    return tuple(Requirement(each.key, _OPERATORS[each.operator], tuple(each.values)) for each in known)

"""Selectors in a request's query, as authorizers see them.

Guarantees: a name that a field selector requires is the request's name for rules that are limited to names; a query
that cannot be read selects nothing, and is refused later, in the verb's words.

Rules: apiserver `pkg/endpoints/request/requestinfo.go`, `pkg/endpoints/filters/authorization.go`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctrlmgr.authorization.attributes import Attributes, Requirement
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.validation.names import path_segment_name
from ctrlmgr.errors import BadRequest

_IN, _NOT_IN = "In", "NotIn"
_OPERATORS = {
    **dict.fromkeys(("=", "==", "in"), _IN),
    **dict.fromkeys(("!=", "notin"), _NOT_IN),
    "exists": "Exists",
    "!": "DoesNotExist",
}
SELECTING = frozenset({"list", "watch", "deletecollection"})
"""Verbs that select."""


def selected(attributes: Attributes, query: Mapping[str, list[str]]) -> Attributes:
    """Return what a request for a collection is about, given its query."""
    if attributes.verb == "list" and _watches(query):
        attributes = attributes._replace(verb="watch")
    if "fieldSelector" not in query and "labelSelector" not in query:
        return attributes
    try:
        fields = FieldSelector.parse(query.get("fieldSelector", [""])[0])
        labels = LabelSelector.parse(query.get("labelSelector", [""])[0])
    except BadRequest:
        return attributes
    name = fields.name or ""
    if attributes.verb == "deletecollection" or path_segment_name(name):
        name = ""
    return attributes._replace(name=name, fields=field_requirements(fields), labels=label_requirements(labels))


def field_requirements(selector: FieldSelector) -> tuple[Requirement, ...]:
    """Return the terms of a field selector."""
    terms = selector.terms
    return tuple(Requirement(term.field, _NOT_IN if term.negated else _IN, (term.value,)) for term in terms)


def label_requirements(selector: LabelSelector) -> tuple[Requirement, ...]:
    """Return the terms of a label selector that authorizers know of: comparisons of numbers are none."""
    known = (each for each in selector.requirements if each.operator in _OPERATORS)
    return tuple(Requirement(each.key, _OPERATORS[each.operator], tuple(each.values)) for each in known)


def _watches(query: Mapping[str, list[str]]) -> bool:
    return query.get("watch", ["false"])[0].lower() not in ("false", "0")

"""Selectors in a request's query, as authorizers see them.

Guarantees: a name that a field selector requires is the request's name for rules that are limited to names; a query
that cannot be read selects nothing, and is refused later, in the verb's words.

Rules: apiserver `pkg/endpoints/request/requestinfo.go`, `pkg/endpoints/filters/authorization.go`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.selectors.requirements import field_requirements, label_requirements
from ctrlmgr.engine.validation.names import path_segment_name
from ctrlmgr.errors import BadRequest

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


def _watches(query: Mapping[str, list[str]]) -> bool:
    return query.get("watch", ["false"])[0].lower() not in ("false", "0")

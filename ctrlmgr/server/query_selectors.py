"""Parses the selectors in a request's query for authorizers.

Guarantees: if a field selector requires a name and the whole query is valid, authorization rules with `resourceNames`
are compared with this name. If one of the two selectors (field or label) is malformed, authorizers still use the valid
selector. After authorization, the verb refuses the malformed selector with the verb's own error.

Source: apiserver `pkg/endpoints/request/requestinfo.go`, `pkg/endpoints/filters/authorization.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.engine.request_options import read_integer
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.selectors.requirements import field_requirements, label_requirements
from ctrlmgr.engine.validation.name_formats import path_segment_name
from ctrlmgr.errors import BadRequest

_Read = TypeVar("_Read")

SELECTING = frozenset({"list", "watch", "deletecollection"})
"""Verbs whose requests can contain selectors."""


def selected(attributes: Attributes, query: Mapping[str, list[str]]) -> Attributes:
    """Return the authorization attributes of a request for a collection, given its query."""
    if attributes.verb == "list" and _watches(query):
        attributes = attributes._replace(verb="watch")
    if "fieldSelector" not in query and "labelSelector" not in query:
        return attributes
    fields = _read(lambda: FieldSelector.parse(query.get("fieldSelector", [""])[0]))
    labels = _read(lambda: LabelSelector.parse(query.get("labelSelector", [""])[0]))
    if fields is not None:
        attributes = attributes._replace(fields=field_requirements(fields))
    if labels is not None:
        attributes = attributes._replace(labels=label_requirements(labels))
    if fields is None or labels is None or attributes.verb == "deletecollection" or not _has_numbers(query):
        return attributes
    name = fields.name or ""
    return attributes if path_segment_name(name) else attributes._replace(name=name)


def _read(read: Callable[[], _Read]) -> _Read | None:
    try:
        return read()
    except BadRequest:
        return None


def _has_numbers(query: Mapping[str, list[str]]) -> bool:
    """Return whether the numeric list options are valid; all other options are always valid."""
    return _read(lambda: [read_integer(query, name) for name in ("limit", "timeoutSeconds")]) is not None


def _watches(query: Mapping[str, list[str]]) -> bool:
    return query.get("watch", ["false"])[0].lower() not in ("false", "0")

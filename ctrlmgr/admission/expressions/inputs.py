"""The variables of CEL expressions about a write: served objects, the request, its namespace, and an authorizer.

Guarantees: all values are copies, so an expression cannot change anything.

Source: apiserver `pkg/admission/plugin/cel/condition.go` (`CreateAdmissionRequest`, `CreateNamespaceObject`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ctrlmgr.admission.webhooks.review import request_of, shown
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES
from ctrlmgr.engine.admission_attributes import Attributes
from ctrlmgr.engine.calls.call import Calling
from ctrlmgr.engine.conversion import converting
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.expressions.library.authorizing import Ask, AuthorizerValue, Question, ResourceCheck
from ctrlmgr.expressions.time_values import parse_timestamp


class Input(NamedTuple):
    """The values of one write that expressions can read, with the object converted to one version."""

    values: Mapping[str, Any]
    attributes: Attributes

    def variables(self, ask: Ask, **more: Any) -> dict[str, Any]:
        """Return the variables of the expressions; their authorizer calls `ask`."""
        return {
            **self.values,
            "authorizer": AuthorizerValue(ask),
            "authorizer.requestResource": ResourceCheck(ask, _about(self.attributes)),
            **more,
        }


def input_of(attributes: Attributes, kind: Kind, kinds: Kinds) -> Calling[Input]:
    """Return the values of a write, with the object in the version of the given kind."""
    new = yield from converting(lambda: shown(attributes, attributes.object, kind, kinds), attributes.call_inputs)
    old = yield from converting(lambda: shown(attributes, attributes.old, kind, kinds), attributes.call_inputs)
    request = request_of(attributes, kind)
    values = {"object": new, "oldObject": old, "request": request, "namespaceObject": None}
    return Input(values, attributes)


def with_namespace(seen: Input) -> Input:
    """Return a copy of the input with the object's namespace added; the namespace of a Namespace is None."""
    attributes = seen.attributes
    if not attributes.namespace or attributes.resource == NAMESPACES:
        return seen
    found = attributes.home
    return seen._replace(values={**seen.values, "namespaceObject": _namespace(found) if found is not None else None})


_METADATA = (
    "name", "generateName", "labels", "annotations", "deletionGracePeriodSeconds", "generation", "finalizers",
)  # fmt: skip


def _namespace(namespace: Object) -> dict[str, Any]:
    """Return those fields of a Namespace that expressions can read: all except ownerReferences and managedFields."""
    fields = namespace.to_dict()
    given = fields.get("metadata") or {}
    metadata = {field: given[field] for field in _METADATA if given.get(field)}
    metadata |= {"UID": given.get("uid", ""), "resourceVersion": str(namespace.revision)}
    for field in ("creationTimestamp", "deletionTimestamp"):
        if given.get(field):
            metadata[field] = parse_timestamp(given[field])
    seen: dict[str, Any] = {"metadata": metadata}
    for part, field in (("spec", "finalizers"), ("status", "phase")):
        if (fields.get(part) or {}).get(field):
            seen[part] = {field: fields[part][field]}
    return seen


def _about(attributes: Attributes) -> Question:
    return Question(
        group=attributes.resource.group,
        resource=attributes.resource.plural,
        subresource=attributes.subresource,
        namespace=attributes.namespace,
        name=attributes.name,
    )

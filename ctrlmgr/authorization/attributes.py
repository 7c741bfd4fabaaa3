"""The attributes of a request, on which authorizers base their decisions, and the error for a refused request.

Source: apiserver `pkg/authorization/authorizer/interfaces.go`, `pkg/endpoints/handlers/responsewriters/errors.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctrlmgr.authentication.user import User
from ctrlmgr.errors import Forbidden, StatusDetails


class Requirement(NamedTuple):
    """One requirement of a label or field selector."""

    key: str
    operator: str
    """The operator of the requirement: `In`, `NotIn`, `Exists` or `DoesNotExist`."""
    values: tuple[str, ...] = ()


class Attributes(NamedTuple):
    """The attributes of a request; if the request is not for a resource, it has only a verb and a path."""

    verb: str
    """The verb of the request: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.

    For a path without a resource, the verb is the HTTP method in lower case.
    """
    path: str = ""
    """The decoded path of the request; empty for a SubjectAccessReview about a resource."""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fields: tuple[Requirement, ...] = ()
    """The field selector of a list, a watch or a deletion of a collection."""
    labels: tuple[Requirement, ...] = ()
    """The label selector of a list, a watch or a deletion of a collection."""
    is_resource: bool = True
    """Whether the request is for a resource; in a SubjectAccessReview, `resource` may nevertheless be empty."""


def length(attributes: Attributes) -> int:
    """Return the total length of the attributes in characters; the client chooses all attributes."""
    verb, path, group, version, resource, subresource, namespace, name, fields, labels, _ = attributes
    selected = sum(len(each.key) + sum(map(len, each.values)) for each in (*fields, *labels))
    return sum(map(len, (verb, path, group, version, resource, subresource, namespace, name))) + selected


def path_attributes(verb: str, path: str) -> Attributes:
    """Return the attributes of a request for a path without a resource."""
    return Attributes(verb, path, is_resource=False)


def review_of(attributes: Attributes) -> dict[str, Any]:
    """Return the `spec` of a SubjectAccessReview for a request, including empty fields."""
    if not attributes.is_resource:
        return {"nonResourceAttributes": {"path": attributes.path, "verb": attributes.verb}}
    selectors = {"fieldSelector": attributes.fields, "labelSelector": attributes.labels}
    resource = {
        "namespace": attributes.namespace,
        "verb": attributes.verb,
        "group": attributes.group,
        "version": attributes.version,
        "resource": attributes.resource,
        "subresource": attributes.subresource,
        "name": attributes.name,
        **{field: _selector(terms) for field, terms in selectors.items() if terms},
    }
    return {"resourceAttributes": resource}


def _selector(terms: Sequence[Requirement]) -> dict[str, Any]:
    return {
        "requirements": [{"key": key, "operator": operator, "values": [*values]} for key, operator, values in terms]
    }


def refusal(user: User, attributes: Attributes, reason: str = "") -> Forbidden:
    """Return the 403 error for a refused request, with the same message as in Kubernetes."""
    why = f": {reason}" if reason else ""
    if not attributes.is_resource:
        words = f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}"{why}'
        return Forbidden(words, details=StatusDetails())
    group, resource, name = attributes.group, attributes.resource, attributes.name
    what = f"{resource}/{attributes.subresource}" if attributes.subresource else resource
    place = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    qualified = f"{resource}.{group}" if group else resource
    subject = f'{qualified} "{name}"' if name else qualified
    return Forbidden(
        f'{subject} is forbidden: User "{user.name}" cannot {attributes.verb} resource "{what}" '
        f'in API group "{group}" {place}{why}',
        details=StatusDetails(name=name, group=group, kind=resource),
    )

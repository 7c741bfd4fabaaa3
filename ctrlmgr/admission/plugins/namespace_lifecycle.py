"""NamespaceLifecycle: refuses writes in missing or terminating namespaces, and deletions of built-in namespaces.

Guarantees: no object is created or changed in a namespace that does not exist, and no object is created in a
terminating namespace. No object is created even if another process deletes the namespace at the same time, because the
append fails if the Namespace has changed (`Attributes.within`). Kubernetes instead decides on its cache, and reads
recently deleted namespaces from the storage. Deletions are never refused because of their namespace.

Rules come from apiserver's `pkg/admission/plugin/namespace/lifecycle/admission.go`.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.api_errors import not_found, terminating

IMMORTAL: Final = frozenset(("default", "kube-system", "kube-public"))
"""The names of the namespaces that cannot be deleted."""
_CREATE: Final = Verb.CREATE  # looking up the member of an enum is a function call in Python 3.11
_REVIEWS: Final = frozenset(
    Resource("authorization.k8s.io", each) for each in ("localsubjectaccessreviews", "subjectaccessreviews")
)
"""Access reviews, which the plugin does not handle, because the Namespace that they name need not exist."""


class _Status(msgspec.Struct):
    phase: str = ""


class _Namespace(msgspec.Struct):
    status: _Status | None = None


def is_terminating(namespace: Object) -> bool:
    """Return whether a Namespace is terminating."""
    status = namespace.view(_Namespace).status
    return status is not None and status.phase == "Terminating"


class NamespaceLifecycle(Plugin):
    """Checks the namespace of creations, updates and connections, and refuses some deletions of namespaces."""

    name: ClassVar[str] = "NamespaceLifecycle"

    def __init__(self) -> None:
        """Create the plugin without a cached namespace."""
        self._open: Object | None = None  # the Namespace that was active at the last check

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: all writes except deletions, and deletions of Namespaces."""
        if resource == NAMESPACES:
            return operation is Verb.DELETE
        return operation is not Verb.DELETE and resource not in _REVIEWS

    def wants_object(self, attributes: Attributes) -> bool:
        """Return that the plugin does not need the object, because it checks only the namespace."""
        return False

    def admit(self, attributes: Attributes) -> None:
        """Raise an error if the state of the namespace does not allow the write.

        The error is `Forbidden` for a deletion of a built-in namespace, `NotFound` if the namespace does not exist, and
        `NamespaceTerminating` for a creation in a terminating namespace.
        """
        if attributes.resource == NAMESPACES:
            if attributes.name in IMMORTAL:
                raise attributes.forbidden("this namespace may not be deleted")
            return
        if not attributes.namespace:
            return
        found = attributes.home
        if found is None:
            raise not_found(NAMESPACES, attributes.namespace)
        if attributes.operation is _CREATE:
            if found is not self._open and is_terminating(found):
                raise terminating(attributes.resource, attributes.called(), attributes.namespace)
            self._open = found
            attributes.within = found.revision or None  # the revision is 0 for a placeholder that is not in the log

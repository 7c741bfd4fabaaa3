"""NamespaceLifecycle: nothing new in a namespace that is missing or going, and some namespaces never go.

Guarantees: nothing is created or changed in a namespace that does not exist, nothing is created in one that is being
terminated, even if another process began with that a moment ago: what is decided here holds when it is written, because
the log checks that the Namespace is still as it was (`Attributes.within`). Kubernetes decides by a cache, and asks the
storage about a namespace that was deleted a moment ago. Deletions are never held up.

Rules come from apiserver's `pkg/admission/plugin/namespace/lifecycle/admission.go`.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from ctrlmgr.admission.plugin import Plugin
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Resource
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.engine.refusals import not_found, terminating

IMMORTAL: Final = frozenset(("default", "kube-system", "kube-public"))
"""Namespaces that every cluster has."""
_CREATE: Final = Verb.CREATE  # Python 3.11 calls a function to find a member of an enumeration
_REVIEWS: Final = frozenset(
    Resource("authorization.k8s.io", each) for each in ("localsubjectaccessreviews", "subjectaccessreviews")
)
"""Questions about a namespace, which are answered whether it exists or not."""


class _Status(msgspec.Struct):
    phase: str = ""


class _Namespace(msgspec.Struct):
    status: _Status | None = None


def is_terminating(namespace: Object) -> bool:
    """Whether a Namespace takes nothing new any more."""
    status = namespace.view(_Namespace).status
    return status is not None and status.phase == "Terminating"


class NamespaceLifecycle(Plugin):
    """Looks at the namespace of what is created or connected to, and at deletions of namespaces."""

    name: ClassVar[str] = "NamespaceLifecycle"

    def __init__(self) -> None:
        """Know no namespace yet."""
        self._open: Object | None = None  # one that is not terminating as it is

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Look at all but deletions, and at deletions of namespaces."""
        if resource == NAMESPACES:
            return operation is Verb.DELETE
        return operation is not Verb.DELETE and resource not in _REVIEWS

    def wants_object(self, attributes: Attributes) -> bool:
        """Look at the namespace alone."""
        return False

    def admit(self, attributes: Attributes) -> None:
        """Refuse with `Forbidden`, `NotFound` or `NamespaceTerminating`."""
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
            attributes.within = found.revision or None  # 0: a stand-in, which no log holds

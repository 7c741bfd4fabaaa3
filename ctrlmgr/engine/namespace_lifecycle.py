"""Admission: where things may be created (the NamespaceLifecycle plugin of apiserver `pkg/admission/plugin`).

Guarantees: nothing is created or changed in a namespace that does not exist, nothing is created in one that is being
terminated, even if another process began with that a moment ago: what is decided here holds when it is written, because
the log checks that the Namespace is still as it was. (Kubernetes decides by a cache, and leaves a deleted namespace
alone for some seconds in which all caches should have learned of it.) Namespaces themselves and deletions are never
held up; who may not be deleted is for strategies to say.
"""

from __future__ import annotations

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Revision
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.refusals import not_found, terminating
from ctrlmgr.engine.strategy import View


class _Status(msgspec.Struct):
    phase: str = ""


class _Namespace(msgspec.Struct):
    status: _Status | None = None


def is_terminating(namespace: Object) -> bool:
    """Whether a Namespace takes nothing new any more."""
    status = namespace.view(_Namespace).status
    return status is not None and status.phase == "Terminating"


def admit_create(view: View, kind: Kind, namespace: str, name: str) -> Revision | None:
    """Refuse to create in a namespace that is missing (`NotFound`) or terminating (`NamespaceTerminating`).

    Returns the revision of the Namespace, for `Proposal.within`; None if the kind has no namespace.
    """
    if not kind.namespaced:
        return None
    found = view.get(NAMESPACES, Key("", namespace))
    if found is None:
        raise not_found(NAMESPACES, namespace)
    if is_terminating(found):
        raise terminating(kind.resource, name or "Unknown", namespace)
    return found.revision


def admit_update(view: View, kind: Kind, namespace: str) -> None:
    """Refuse to change what is in a namespace that is missing."""
    if kind.namespaced and view.get(NAMESPACES, Key("", namespace)) is None:
        raise not_found(NAMESPACES, namespace)

"""OwnerReferencesPermissionEnforcement: a user may set an object's owners only with the right to delete the object.

An owner reference that blocks the owner's deletion also requires the right to set the owner's finalizers.

Rules come from Kubernetes' `plugin/pkg/admission/gc/gc_admission.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.authorization_checks import author_of, verdict_of
from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.authorization.attributes import Attributes as Question
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Operation

Reference = Mapping[str, Any]


class OwnerReferencesPermissionEnforcement(Plugin):
    """Checks the user's right to delete the object whose owners change.

    If the object blocks the deletion of an owner, the plugin also checks the right to set finalizers of the owner.
    """

    name: ClassVar[str] = "OwnerReferencesPermissionEnforcement"

    def __init__(self, kinds: Kinds, authorizer: Authorizer) -> None:
        """Create the plugin; it finds the kinds of owners in `kinds`, and checks rights with `authorizer`."""
        self._kinds = kinds
        self._authorizer = authorizer

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: all creations and updates, except updates of pods' status.

        The plugin ignores status updates of pods, because kubelets must write the status but may not delete pods.
        """
        return operation in (Verb.CREATE, Verb.UPDATE) and (resource, subresource) != (PODS, "status")

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Raise `Forbidden` if the user lacks the right to delete the object or to block its owners."""
        new, old = _references(attributes.object), _references(attributes.old)
        if new == old:
            return
        reason = yield from self._refusal(
            attributes, "delete", attributes.kind, attributes.subresource, attributes.name
        )
        if reason is not None:
            raise attributes.forbidden(f"cannot set an ownerRef on a resource you can't delete: {reason}, <nil>")
        for reference in _newly_blocking(new, old):
            yield from self._check_owner(attributes, reference)

    def _check_owner(self, attributes: Attributes, reference: Reference) -> Operation[None]:
        version, name = reference.get("apiVersion") or "", reference.get("kind") or ""
        kind = next((each for each in self._kinds if (each.gvk.api_version, each.name) == (version, name)), None)
        if kind is None:
            message = f"cannot find RESTMapping for APIVersion {version} Kind {name}"
            group, _, bare = version.rpartition("/")
            problem = f'no matches for kind "{name}" in version "{f"{group}/{bare}" if group else bare}"'
            raise attributes.forbidden(f"cannot set blockOwnerDeletion in this case because {message}: {problem}")
        reason = yield from self._refusal(attributes, "update", kind, "finalizers", reference.get("name") or "")
        if reason is not None:
            whose = "if an ownerReference refers to a resource you can't set finalizers on"
            raise attributes.forbidden(f"cannot set blockOwnerDeletion {whose}: {reason}, <nil>")

    def _refusal(
        self, attributes: Attributes, verb: str, kind: Kind, subresource: str, name: str
    ) -> Operation[str | None]:
        """Return the reason why the user lacks a right; None if the user has the right."""
        question = Question(
            verb,
            "",
            kind.resource.group,
            kind.gvk.version,
            kind.resource.plural,
            subresource,
            attributes.namespace if kind.namespaced else "",
            name,
        )
        verdict = yield from verdict_of(self._authorizer, author_of(attributes), question)
        return None if verdict.allows else verdict.reason


def _references(fields: Mapping[str, Any] | None) -> Sequence[Reference]:
    return ((fields or {}).get("metadata") or {}).get("ownerReferences") or []


def _newly_blocking(new: Sequence[Reference], old: Sequence[Reference]) -> Iterator[Reference]:
    """Yield the owner references that newly block the deletion of their owner."""
    blocked = {each.get("uid") for each in old if each.get("blockOwnerDeletion")}
    for each in new:
        if each.get("blockOwnerDeletion") and each.get("uid") not in blocked:
            yield each

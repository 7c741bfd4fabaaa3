"""NamespaceAutoProvision creates missing namespaces; NamespaceExists refuses writes in missing namespaces.

Rules come from Kubernetes' `plugin/pkg/admission/namespace/{autoprovision,exists}/admission.go`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Decision, Plugin
from ctrlmgr.api.resource import NAMESPACES, Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.api_errors import not_found
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import REFRESH, Append, Operation
from ctrlmgr.engine.writes.plan import Plan
from ctrlmgr.errors import AlreadyExists
from ctrlmgr.eventlog.event import EventType, Proposal

NAME_LABEL: Final = "kubernetes.io/metadata.name"


class NamespaceAutoProvision(Plugin):
    """Creates the namespace of a new object if it does not exist."""

    name: ClassVar[str] = "NamespaceAutoProvision"

    def __init__(self, kinds: Kinds) -> None:
        """Create the plugin, which encodes Namespaces with the codec of `kinds`."""
        self._kinds = kinds

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: all creations."""
        return operation is Verb.CREATE and resource != NAMESPACES

    def wants_object(self, attributes: Attributes) -> bool:
        """Return that the plugin does not need the object, because it checks only the namespace."""
        return False

    def admit(self, attributes: Attributes) -> Decision:
        """Create the missing namespace, unless the write is a dry run."""
        if not attributes.namespace or attributes.dry_run:
            return None
        if attributes.home is not None:
            return None
        return self._make(attributes)

    def _make(self, attributes: Attributes) -> Operation[None]:
        kind = self._kinds.stored(NAMESPACES)
        assert kind is not None  # Namespace is a built-in kind, so it is found
        name = attributes.namespace
        fields: Unstructured = {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "uid": new_uid(attributes.random),
                "creationTimestamp": attributes.now,
                "labels": {NAME_LABEL: name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        made = Plan(kind, self._kinds).encode(fields)
        with suppress(AlreadyExists):  # another write has just created the namespace
            yield Append((Proposal(EventType.ADDED, made, 0),), attributes.requester.author)
        yield REFRESH


class NamespaceExists(Plugin):
    """Refuses every write in a namespace that does not exist, including deletions."""

    name: ClassVar[str] = "NamespaceExists"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: all writes except connections."""
        return operation is not Verb.CONNECT and resource != NAMESPACES

    def wants_object(self, attributes: Attributes) -> bool:
        """Return that the plugin does not need the object, because it checks only the namespace."""
        return False

    def validate(self, attributes: Attributes) -> None:
        """Raise `NotFound` if the namespace does not exist."""
        if attributes.namespace and attributes.home is None:
            raise not_found(NAMESPACES, attributes.namespace)

"""The base class of admission plugins: a name, the writes that it handles, and two hooks to override.

Guarantees: a plugin is called only for writes that it `handles`. The result of `handles` never changes, so the chain
calls it once for each kind of write. If a plugin sets `activated_by`, the plugin is called only if objects of that
resource exist. A hook that can decide without waiting is a plain method that returns None. A hook that must wait
returns a generator of commands (`engine.operations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, TypeAlias

from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation

Decision: TypeAlias = Operation[None] | None
"""The result of a hook: None if the hook has already decided; otherwise the operation that decides."""


class Registration(NamedTuple):
    """The resource whose objects activate a plugin."""

    resource: Resource
    of_namespace: bool = False
    """Whether only objects in the namespace of the write can activate the plugin."""


class Plugin:
    """The base class of all plugins; its hooks admit every write."""

    name: ClassVar[str]
    """The plugin's name in `--enable-admission-plugins`."""
    activated_by: Registration | None = None
    """The resource whose objects activate the plugin.

    The plugin is called only if objects of the resource exist; if the resource is None, the plugin is called for all
    writes that it handles.
    """

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles writes of this kind, and must be called for them."""
        raise NotImplementedError

    def needs(self, subresource: str) -> Sequence[str]:
        """Return fields of a spec; the plugin is called only if at least one of these fields is set.

        An empty result means that the plugin is called for all writes that it handles.
        """
        return ()

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether the plugin needs the object to decide on this write.

        When this method is called, `attributes` may lack the object. If no plugin needs the object, the write of a
        controller is not decoded for admission.
        """
        return True

    def admit(self, attributes: Attributes) -> Decision:
        """Change the new object in place; a plugin that refuses the write raises an `ApiError`."""
        return None

    def validate(self, attributes: Attributes) -> Decision:
        """Check the write; a plugin that refuses the write raises an `ApiError`.

        The object is in its final form and must not be changed.
        """
        return None

    def mutates(self, resource: Resource) -> bool:
        """Return whether `admit` must be called for writes to `resource`."""
        return type(self).admit is not Plugin.admit

    def validates(self, resource: Resource) -> bool:
        """Return whether `validate` must be called for writes to `resource`."""
        return type(self).validate is not Plugin.validate

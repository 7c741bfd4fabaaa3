"""What an admission plugin is: a name, the writes it looks at, and two hooks of which it overrides what it needs.

Guarantees: a plugin is called only for writes it `handles`; what it handles never changes, so that the chain asks once
for each kind of write. A plugin that is `activated_by` objects which users register is called only where there are any.
A hook that can decide at once is a plain method that returns None; one that must wait returns a generator of commands
(`engine.operations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, TypeAlias

from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation

Decision: TypeAlias = Operation[None] | None
"""None: decided. Otherwise what has to be run to decide."""


class Registration(NamedTuple):
    """Which objects give a plugin something to do."""

    resource: Resource
    of_namespace: bool = False
    """Whether only those in the namespace of the write do."""


class Plugin:
    """The base of all plugins; by itself it does nothing."""

    name: ClassVar[str]
    """What `--enable-admission-plugins` calls it."""
    activated_by: Registration | None = None
    """The objects without which it is not called; None: it is called for all that it handles."""

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Whether the plugin looks at such writes."""
        raise NotImplementedError

    def needs(self, subresource: str) -> Sequence[str]:
        """Return fields of a spec; where none of them is there, the plugin has nothing to do and is not called.

        None of them: it is called for all that it handles.
        """
        return ()

    def wants_object(self, attributes: Attributes) -> bool:
        """Whether the plugin, were it called, would need the object to decide on this write.

        `attributes` may be without the object. Where no plugin wants it, a controller's write is spared the decoding.
        """
        return True

    def admit(self, attributes: Attributes) -> Decision:
        """Change the new object in place, or raise an `ApiError` to refuse the write."""
        return None

    def validate(self, attributes: Attributes) -> Decision:
        """Raise an `ApiError` to refuse the write; the object is complete and stays as it is."""
        return None

    def mutates(self, resource: Resource) -> bool:
        """Whether there is an `admit` to call for what is of `resource`."""
        return type(self).admit is not Plugin.admit

    def validates(self, resource: Resource) -> bool:
        """Whether there is a `validate` to call for what is of `resource`."""
        return type(self).validate is not Plugin.validate

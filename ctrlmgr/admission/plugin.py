"""What an admission plugin is: a name, the writes it looks at, and two hooks of which it overrides what it needs.

Guarantees: a plugin is called only for writes it `handles`; what it handles never changes, so that the chain asks once
for each kind of write. A hook that can decide at once is a plain method that returns None; one that must wait returns
a generator of commands (`engine.operations`).
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation

Decision: TypeAlias = Operation[None] | None
"""None: decided. Otherwise what has to be run to decide."""


class Plugin:
    """The base of all plugins; by itself it does nothing."""

    name: ClassVar[str]
    """What `--enable-admission-plugins` calls it."""

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Whether the plugin looks at such writes."""
        raise NotImplementedError

    def wants_object(self, attributes: Attributes) -> bool:
        """Whether the plugin needs the object to decide on this write: False where nothing is registered for it.

        `attributes` may be without the object. Where no plugin wants it, a controller's write is spared the decoding.
        """
        return True

    def admit(self, attributes: Attributes) -> Decision:
        """Change the new object in place, or raise an `ApiError` to refuse the write."""
        return None

    def validate(self, attributes: Attributes) -> Decision:
        """Raise an `ApiError` to refuse the write; the object is complete and stays as it is."""
        return None

    @classmethod
    def mutates(cls) -> bool:
        """Whether there is an `admit` to call."""
        return cls.admit is not Plugin.admit

    @classmethod
    def validates(cls) -> bool:
        """Whether there is a `validate` to call."""
        return cls.validate is not Plugin.validate

"""Notifies controllers that handle every kind when CustomResourceDefinitions are established or deleted.

Guarantees: a controller is notified on the informers' thread. The notification of an established
CustomResourceDefinition precedes the addition of its instances to the cache. Therefore a handler that the controller
adds during a notification receives every instance. The cache of the instances is complete at the revision at which the
CustomResourceDefinition was established, and follows the log from that revision.
"""

from __future__ import annotations

from typing import Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Resource
from ctrlmgr.extensions.custom.custom_kind import outline_of
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.informer import Change, Informer, Informers


class Follower(Protocol):
    """The interface of a controller that handles every kind."""

    def begin(self, definition: Definition, resource: Resource, instances: Informer) -> None:
        """Start handling the instances of a CustomResourceDefinition, whose resource is `resource`.

        The method is called again if the CustomResourceDefinition changes.
        """

    def end(self, definition: Definition, resource: Resource) -> None:
        """Stop handling the instances of a deleted CustomResourceDefinition."""


def follow_definitions(informers: Informers, follower: Follower) -> None:
    """Notify `follower` of CustomResourceDefinitions, beginning with the first sync of the informers.

    The caller must call the function before the first sync.
    """

    def on_change(change: Change) -> None:
        if change.new is not None:
            definition = _established(change.new)
            if definition is not None:
                resource = Resource(definition.group, definition.accepted.plural)
                follower.begin(definition, resource, informers.informer(resource))
        elif change.old is not None and (definition := _established(change.old)) is not None:
            follower.end(definition, Resource(definition.group, definition.accepted.plural))

    informers.informer(DEFINITIONS).add_handler(on_change, vital=True)


def _established(obj: Object) -> Definition | None:
    definition = outline_of(obj)
    return definition if definition.has_condition("Established") else None

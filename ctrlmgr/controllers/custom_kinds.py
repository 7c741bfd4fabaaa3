"""Follows the kinds that come and go with their definitions, for controllers that deal with every kind.

Guarantees: a controller that follows is told of a definition on the informers' thread, as soon as it is established and
before its instances are in their cache: handlers that it adds then hear of every one of them. The cache is complete at
the revision at which the definition was established, and follows the log with all others from there on.
"""

from __future__ import annotations

from typing import Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Resource
from ctrlmgr.extensions.custom.kind import outline_of
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.informer import Change, Informer, Informers


class Follower(Protocol):
    """What deals with every kind."""

    def begin(self, definition: Definition, resource: Resource, instances: Informer) -> None:
        """Deal with the instances of a definition, which are a `resource`; called again when the definition changes."""

    def end(self, definition: Definition, resource: Resource) -> None:
        """Take note that a definition is gone; so are its instances."""


def follow_definitions(informers: Informers, follower: Follower) -> None:
    """Tell `follower` of definitions from the first sync on; called before it."""

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

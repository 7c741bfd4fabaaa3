"""Which custom kinds a cluster serves, by what the watch of its definitions says: when to begin with one, and to end.

Guarantees: a kind is begun once, at the revision at which it was established, and ended once, at the revision of its
definition's deletion; one that comes again before its end was seen simply goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.recording.capture.cluster import Served


class Begun(NamedTuple):
    """A kind is served from a revision on; 0: it may have been there for longer, so it has to be listed."""

    served: Served
    revision: Revision


class Moved(NamedTuple):
    """The version of a kind that was recorded is not served any more, but another one."""

    served: Served


class Ended(NamedTuple):
    """A definition is gone, and with it all objects of its kind."""

    resource: Resource
    revision: Revision


Step: TypeAlias = Begun | Moved | Ended


class CustomKinds:
    """What there is of custom kinds; used by one thread."""

    def __init__(self, namespace: str = "") -> None:
        """Follow none yet; with a namespace only kinds that are in namespaces are followed."""
        self._namespace = namespace
        self._served: dict[Resource, Served] = {}
        self._defined: set[Resource] = set()

    def known(self, served: Served) -> None:
        """Take a kind that is recorded from the beginning."""
        self._served[served.resource] = served

    def changed(self, type: EventType, obj: Object) -> Iterator[Step]:
        """Take a definition's change, and yield what follows from it."""
        definition = Definition(obj.to_dict())
        if type is EventType.DELETED:
            yield from self._gone(Resource(definition.group, definition.names.plural), obj.revision)
        else:
            yield from self._shown(definition, obj.revision)

    def listed(self, objects: Mapping[Key, Object], revision: Revision) -> Iterator[Step]:
        """Take all definitions that there are at a revision, and yield what follows from them."""
        definitions = [Definition(obj.to_dict()) for obj in objects.values()]
        there = {Resource(each.group, each.names.plural) for each in definitions}
        for resource in self._defined - there:
            yield from self._gone(resource, revision)
        for each in definitions:
            yield from self._shown(each, 0)

    def _gone(self, resource: Resource, revision: Revision) -> Iterator[Step]:
        self._defined.discard(resource)
        if self._served.pop(resource, None) is not None:
            yield Ended(resource, revision)

    def _shown(self, definition: Definition, revision: Revision) -> Iterator[Step]:
        resource = Resource(definition.group, definition.names.plural)
        self._defined.add(resource)
        paths = [f"/apis/{definition.group}/{version.name}" for version in definition.served]
        if not paths or not definition.has_condition("Established"):
            return
        if self._namespace and not definition.namespaced:
            return
        before = self._served.get(resource)
        if before is None:
            self._served[resource] = Served(resource, paths[0], definition.namespaced)
            yield Begun(self._served[resource], revision)
        elif before.path not in paths:
            self._served[resource] = before._replace(path=paths[0])
            yield Moved(self._served[resource])

"""Follows the CustomResourceDefinitions of a cluster, and decides when to start and stop recording each custom kind.

Guarantees: the recording of a kind starts at the revision at which the kind was established, and stops at the revision
at which its CustomResourceDefinition was deleted. If a kind's CustomResourceDefinition is created again before the
recording stopped, the recording continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.recording.capture.cluster_client import Served


class KindServed(NamedTuple):
    """A step that says that a kind is served from `revision` on.

    `revision` is 0 if objects of the kind may already exist, so that the recorder must list them.
    """

    served: Served
    revision: Revision


class KindMoved(NamedTuple):
    """A step that says that the recorded version of a kind is no longer served, and another version is."""

    served: Served


class KindDeleted(NamedTuple):
    """A step that says that a CustomResourceDefinition was deleted, together with all objects of its kind."""

    resource: Resource
    revision: Revision


Step: TypeAlias = KindServed | KindMoved | KindDeleted


class CustomKinds:
    """The custom kinds that the cluster serves; only one thread may use an instance."""

    def __init__(self, namespace: str = "") -> None:
        """Start without custom kinds; if a namespace is given, only namespaced kinds are followed."""
        self._namespace = namespace
        self._served: dict[Resource, Served] = {}
        self._defined: set[Resource] = set()

    def known(self, served: Served) -> None:
        """Add a kind that is recorded from the beginning of the recording."""
        self._served[served.resource] = served

    def changed(self, type: EventType, obj: Object) -> Iterator[Step]:
        """Process a change of a CustomResourceDefinition, and yield the resulting steps."""
        definition = Definition(obj.to_dict())
        if type is EventType.DELETED:
            yield from self._gone(Resource(definition.group, definition.names.plural), obj.revision)
        else:
            yield from self._shown(definition, obj.revision)

    def listed(self, objects: Mapping[Key, Object], revision: Revision) -> Iterator[Step]:
        """Process all CustomResourceDefinitions that exist at a revision, and yield the resulting steps."""
        definitions = [Definition(obj.to_dict()) for obj in objects.values()]
        there = {Resource(each.group, each.names.plural) for each in definitions}
        for resource in self._defined - there:
            yield from self._gone(resource, revision)
        for each in definitions:
            yield from self._shown(each, 0)

    def _gone(self, resource: Resource, revision: Revision) -> Iterator[Step]:
        self._defined.discard(resource)
        if self._served.pop(resource, None) is not None:
            yield KindDeleted(resource, revision)

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
            yield KindServed(self._served[resource], revision)
        elif before.path not in paths:
            self._served[resource] = before._replace(path=paths[0])
            yield KindMoved(self._served[resource])

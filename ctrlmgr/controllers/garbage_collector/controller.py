"""The garbage collector: deletes objects whose owners are deleted, and completes foreground and orphaning deletions.

Guarantees:

- An object is deleted only if each of its owners is deleted or waits for the object's deletion. The preconditions of
  the deletion are the uid and the resourceVersion with which the decision was made.
- An owner reference refers to the object with the kind, name and uid in the reference. If the owner's kind is
  namespaced, the owner is in the dependent's namespace.
- If a decision was made while a sync replaced the stores, the decision is discarded and made again.
- Every write of the garbage collector is conditional on the revision that was read. A repeated, late or lost write does
  no harm, because the next reconcile decides again.

The module `decisions` contains the rules, and `owner_graph` contains the graph of owner references.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import structlog

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.api.resource import EVENTS, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.custom_kinds import follow_definitions
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import WARNING, Recorder, reference_to
from ctrlmgr.controllers.garbage_collector import DESCRIPTOR, Options
from ctrlmgr.controllers.garbage_collector.decide import (
    Decision,
    Delete,
    Detach,
    Orphan,
    Release,
    decide,
    is_waiting,
)
from ctrlmgr.controllers.garbage_collector.owner_graph import Graph, Item, Scope, is_irrelevant, references
from ctrlmgr.controllers.garbage_collector.owner_graph_dump import dump
from ctrlmgr.engine.deletion import ORPHAN
from ctrlmgr.engine.kind import Kind
from ctrlmgr.errors import NotFound
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.golang.go_text import quote
from ctrlmgr.informer import Change, Informer, Informers, Lister
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.manager.debug_page import DebugPage, Query

log = structlog.get_logger(__name__)


_SYNCING = 0.1
"""The number of seconds after which an object that was reconciled during a sync is reconciled again."""


class GarbageCollector:
    """Reconciles objects of every kind; the key of a reconcile is the property `key` of an `Item`."""

    def __init__(self, graph: Graph, informers: Informers, recorder: Recorder) -> None:
        """Create a reconciler that decides with `graph`, and records Events for invalid owner references.

        The graph follows `informers`.
        """
        self._graph = graph
        self._recorder = recorder
        self._informers = informers
        # The keys of this dictionary are the uids of owners. Only the informers' thread uses the dictionary.
        self._late: dict[str, set[Item]] = {}
        """Dependents that were created while their owner waited for the deletion of other dependents. A dependent stays
        in this dictionary until one of the other dependents is deleted.
        """

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Decide about one object, and write the result of the decision."""
        epoch = self._informers.epoch
        obj = self._graph.get(Item.parse(key))
        if obj is None:
            return None
        decision = decide(obj, self._graph)
        if epoch % 2 or epoch != self._informers.epoch:
            return Result(requeue_after=_SYNCING)
        try:
            _act(obj, decision, client)
        except NotFound:
            log.debug("object already deleted", key=str(key))
        return None

    def debug_page(self, name: str, query: Query) -> DebugPage:
        """Return the graph of owner references in DOT, or the parts of it that contain an object in `?uid=`."""
        return DebugPage("text/vnd.graphviz", dump(self._graph, query.get("uid", ())))

    def affected(self, change: Change) -> Iterable[Key]:
        """Return the keys of all objects that a change may affect; the graph must already contain the change."""
        if is_irrelevant(change):
            return ()
        for dependent, owner in self._graph.misplaced(change):
            self._recorder.event(*misplacement(dependent, owner))
        return self._affected(change.old, change.new)

    def _affected(self, old: Object | None, new: Object | None) -> Iterator[Key]:
        if new is not None and decide(new, self._graph) is not None and not (old is None and self._is_late(new)):
            yield Item.of(new).key
        if old is not None and (new is None or new.uid != old.uid):
            yield from self._dependents(old)
        if new is not None and is_waiting(new) and not (old is not None and is_waiting(old)):
            yield from self._dependents(new)
        if old is not None:
            yield from self._unblocked(old, new)
            if new is None:
                self._late.pop(old.uid, None)

    def _is_late(self, new: Object) -> bool:
        """Return whether an object, such as a replacement, was created while an owner waited for other dependents.

        Like Kubernetes (`processDeletingDependentsItem`), the collector does not immediately delete an object that was
        created during the wait. The collector deletes the object after one of the other dependents is deleted.
        Without this rule, the controller that replaces the objects would create objects as fast as the collector
        deletes them.
        """
        for reference in references(new):
            place = self._graph.place_of(reference, new.namespace)
            owner = self._graph.get(place) if place is not None else None
            if owner is not None and owner.uid == reference.uid and is_waiting(owner):
                began, came = owner.metadata.deletion_timestamp or "", new.metadata.creation_timestamp or ""
                if came >= began and self._graph.blocking(owner.uid) > 1:
                    self._late.setdefault(owner.uid, set()).add(Item.of(new))
                    return True
        return False

    def _dependents(self, owner: Object) -> Iterator[Key]:
        return (item.key for item in self._graph.dependents(owner.uid))

    def _unblocked(self, old: Object, new: Object | None) -> Iterator[Key]:
        """Yield the owners whose deletion `old` no longer blocks, and the late dependents of these owners.

        An owner is reconciled only after its last blocking dependent is deleted, and not after each deletion of a
        dependent.
        """
        still = {owner.uid for owner in references(new) if owner.block_owner_deletion} if new is not None else ()
        for reference in references(old):
            if reference.block_owner_deletion and reference.uid not in still:
                yield from sorted(item.key for item in self._late.pop(reference.uid, ()))
                place = self._graph.place_of(reference, old.namespace)
                owner = self._graph.get(place) if place is not None else None
                if owner is not None and is_waiting(owner) and decide(owner, self._graph) is not None:
                    yield Item.of(owner).key


def misplacement(dependent: Object, owner: OwnerReference) -> tuple[ObjectReference, str, str, str]:
    """Return the Event for a dependent of an owner in another namespace (`reportInvalidNamespaceOwnerRef`)."""
    namespace = dependent.namespace
    kind = f"{owner.api_version}/{owner.kind}"
    place = f"[{kind}, namespace: {namespace}, name: {owner.name}, uid: {owner.uid}]"
    message = f"ownerRef {place} does not exist in namespace {quote(namespace)}"
    reference = msgspec.structs.replace(reference_to(dependent), resource_version="")
    return reference, WARNING, "OwnerRefInvalidNamespace", message


def _act(obj: Object, decision: Decision, client: EngineClient) -> None:
    match decision:
        case Delete(propagation, unblock):
            client.delete(client.update(_unblocking(obj)) if unblock else obj, propagation)
        case Detach(kept):
            client.update(obj.with_metadata(owner_references=kept))
        case Release(finalizer):
            client.update(_without(obj, finalizer))
        case Orphan(dependents):
            for dependent in dependents:
                _disown(dependent, obj.uid, client)
            client.update(_without(obj, ORPHAN))


def _disown(dependent: Object, uid: str, client: EngineClient) -> None:
    kept = [owner for owner in references(dependent) if owner.uid != uid]
    try:
        client.update(dependent.with_metadata(owner_references=kept or None))
    except NotFound:
        log.debug("dependent already deleted", resource=str(dependent.resource), key=str(dependent.key))


def _unblocking(obj: Object) -> Object:
    owners = [msgspec.structs.replace(owner, block_owner_deletion=False) for owner in references(obj)]
    return obj.with_metadata(owner_references=owners)


def _without(obj: Object, finalizer: str) -> Object:
    return obj.with_metadata(finalizers=[each for each in obj.metadata.finalizers or () if each != finalizer] or None)


def is_collected(kind: Kind) -> bool:
    """Return whether objects of a kind are garbage-collected.

    As in Kubernetes, Events are not garbage-collected, because there can be very many Events.
    """
    return {"delete", "list", "watch"} <= kind.verbs and kind.storage != EVENTS


class _CustomOwners:
    """Adds the instances of CustomResourceDefinitions to the garbage collector."""

    def __init__(
        self,
        listers: dict[Resource, Lister],
        scopes: dict[tuple[str, str], Scope],
        graph: Graph,
        collector: GarbageCollector,
        controller: Controller,
    ) -> None:
        self._listers = listers
        self._scopes = scopes
        self._graph = graph
        self._collector = collector
        self._controller = controller

    def begin(self, definition: Definition, resource: Resource, instances: Informer) -> None:
        """Watch the instances of a new custom kind, and reconcile the objects that refer to this kind."""
        names = {(f"{definition.group}/{version}", definition.accepted.kind) for version in definition.versions}
        news = names - self._scopes.keys()
        for name in names:
            self._scopes[name] = Scope(resource, definition.namespaced)
        if resource not in self._listers:
            self._listers[resource] = instances.lister
            # The graph's handler precedes the controller's handler, which reads the graph. If the graph lacked a
            # change, the controller could delete objects that it must keep.
            instances.add_handler(self._graph.fold, vital=True)
            self._controller.watch(Watch(instances, self._collector.affected))
        for item in self._graph.referring(news) if news else ():
            self._controller.queue.add(item.key)

    def end(self, definition: Definition, resource: Resource) -> None:
        """Remove a custom kind from the graph.

        After that, objects with an owner of the removed kind are not collected.
        """
        for version in definition.versions:
            self._scopes.pop((f"{definition.group}/{version}", definition.accepted.kind), None)


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context; the controller watches all collected kinds, in every served version."""
    informers = context.informers
    watched: dict[Resource, Informer] = {}
    scopes: dict[tuple[str, str], Scope] = {}
    for kind in filter(is_collected, context.engine.kinds):
        watched[kind.storage] = informers.informer(kind.storage)
        scopes[kind.gvk.api_version, kind.name] = Scope(kind.storage, kind.namespaced)
    listers = {resource: informer.lister for resource, informer in watched.items()}
    graph = Graph(listers, scopes)
    for informer in watched.values():
        # The graph's handler precedes the controller's handler, which reads the graph.
        informer.add_handler(graph.fold, vital=True)
    collector = GarbageCollector(graph, informers, context.recorder(DESCRIPTOR))
    watches = [Watch(informer, collector.affected) for informer in watched.values()]
    controller = assemble(DESCRIPTOR, context, collector, watches, workers=options.concurrent_gc_syncs)
    follow_definitions(informers, _CustomOwners(listers, scopes, graph, collector, controller))
    return controller

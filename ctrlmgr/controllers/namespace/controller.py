"""The namespace controller: empties a namespace that is being deleted, and lets it go when nothing is left.

Guarantees:
- Only what lies in that namespace is touched, and only while it is terminating; every deletion names the uid it means,
  so an object made anew under the same name is never taken for the old one. Nor is what is in a namespace that was made
  anew, while another process finished off the old one.
- Pods go first: nothing else is deleted while one is left (KEP-5080, ordered namespace deletion).
- The `kubernetes` finalizer is removed only after a pass that found every kind empty, in a namespace in which nothing
  can be created any more.
- The five conditions say what is left and why; they are written only when they change.
- For some seconds after it was deleted a namespace is left as it is, as Kubernetes leaves it, so that a client that saw
  it alive a moment ago can finish.

It looks again whenever content goes, and not at fixed times: a pod that has its grace left is the one thing it waits
for by the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, PODS, Key, Resource
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock, format_time_seconds, parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.custom_kinds import follow_definitions
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.namespace import DESCRIPTOR, Options
from ctrlmgr.controllers.namespace.conditions import Content, desired_conditions
from ctrlmgr.errors import Conflict, NotFound
from ctrlmgr.eventlog import EventType
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.informer import Change, Informer, Informers, Lister
from ctrlmgr.manager import Controller, Result, Watch

log = structlog.get_logger(__name__)

CONTROLLER_NAME = DESCRIPTOR.name
FINALIZER = "kubernetes"

_FINISHED_PHASES = ("Succeeded", "Failed")
_SYNCING = 0.1
"""Seconds until a namespace is looked at again whose content could not be told."""


class _Kept(NamedTuple):
    """What a pass over one kind found left, and for how long (seconds) that is to be expected."""

    objects: Sequence[Object]
    grace: float = 0.0


class _Overtaken(Exception):
    """What was listed may not be the content of the namespace it was taken for."""


class NamespaceReconciler:
    """Deletes content and reports on it; the key is a namespace's."""

    def __init__(
        self, informers: Informers, content: dict[Resource, tuple[str, Lister]], *, clock: Clock, grace: float
    ) -> None:
        """`content` lists every namespaced kind: its resource, API version (`v1`, `apps/v1`) and lister.

        `grace` is how long (seconds) a namespace is left alone after it was deleted.
        """
        self._informers = informers
        self._namespaces = informers.informer(NAMESPACES).lister
        self._pods = content[PODS][1]
        self._content = content
        self._clock = clock
        self._grace = grace
        # When each terminating namespace was first seen to be (monotonic seconds), by uid: its grace counts from there.
        self._seen: dict[str, float] = {}

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Take a terminating namespace one step further."""
        namespace = self._namespaces.get(key)
        if namespace is None or not namespace.is_terminating or FINALIZER not in _finalizers(namespace):
            if namespace is not None:
                self._seen.pop(namespace.uid, None)
            return None
        if wait := self._grace_of(namespace):
            return Result(requeue_after=wait)
        try:
            found, wait = self._empty(namespace, client)
        except _Overtaken:
            return Result(requeue_after=_SYNCING)
        namespace = self._report(namespace, found or Content(), client)
        if found is None:
            self._let_go(namespace, client)
            self._seen.pop(namespace.uid, None)
            return None
        return Result(requeue_after=wait) if wait else None

    def _grace_of(self, namespace: Object) -> float:
        """Return the seconds for which a namespace is still left alone.

        To the microsecond: what sums of floats differ by is no time that a clock could be waited for.
        """
        now = self._clock.monotonic()
        return max(round(self._seen.setdefault(namespace.uid, now) + self._grace - now, 6), 0.0)

    def _empty(self, namespace: Object, client: Client) -> tuple[Content | None, float]:
        """Delete what can be; return what is left (None: nothing), and in how many seconds to look again (0: never)."""
        content = Content()
        epoch = self._informers.epoch
        pods = self._delete_all(PODS, namespace, epoch, client)
        if pods.objects:
            wait = self._grace_left(namespace, pods)
            if not wait and not any(pod.metadata.finalizers for pod in pods.objects):
                content.failures.append(_unexpected(namespace.name, "v1", PODS))
            return content, wait
        left = 0
        for resource, (version, _) in list(self._content.items()):  # which grows with the definitions
            kept = self._delete_all(resource, namespace, epoch, client)
            content.add(kept.objects)
            left += len(kept.objects)
            if kept.objects and not any(obj.metadata.finalizers for obj in kept.objects):
                content.failures.append(_unexpected(namespace.name, version, resource))
        return (content if left else None), 0.0

    def _list(self, resource: Resource, namespace: Object, epoch: int) -> Sequence[Object]:
        """Return the objects of one kind in this very namespace; raises `_Overtaken` if that cannot be told.

        The caches follow the log in its order: if the namespace is still there after its content was listed, that
        content was its own. Only a sync in between, which replaces one cache after the other, breaks that order.
        """
        objects = self._content[resource][1].list(namespace.name)
        current = self._namespaces.get(namespace.key)
        if current is None or current.uid != namespace.uid or epoch % 2 or epoch != self._informers.epoch:
            raise _Overtaken
        return objects

    def _delete_all(self, resource: Resource, namespace: Object, epoch: int, client: Client) -> _Kept:
        """Delete the objects of one kind; return those that stay because something holds them."""
        kept = []
        for obj in self._list(resource, namespace, epoch):
            if not obj.is_terminating:
                try:
                    client.delete(obj)
                except (NotFound, Conflict):
                    continue  # gone, or made anew: the informer brings the news
                if not _may_stay(obj):
                    continue
            kept.append(obj)
        return _Kept(kept, max(map(_grace, kept), default=0.0) if resource == PODS else 0.0)

    def _grace_left(self, namespace: Object, pods: _Kept) -> float:
        deleted_at = parse_time(namespace.metadata.deletion_timestamp or "") / 1_000_000
        return max(deleted_at + pods.grace - self._clock.now() / 1_000_000, 0.0)

    def _report(self, namespace: Object, content: Content, client: Client) -> Object:
        """Say what is left, if that is news; return the namespace as it is then."""
        fields = namespace.to_dict()
        status: dict[str, Any] = fields.setdefault("status", {})
        before = status.get("conditions") or []
        wanted = desired_conditions(content, before, format_time_seconds(self._clock.now()))
        if wanted != before:
            status["conditions"] = wanted
            return client.update(Object.from_dict(fields), "status")
        return namespace

    def _let_go(self, namespace: Object, client: Client) -> None:
        fields = namespace.to_dict()
        fields["spec"]["finalizers"] = [each for each in _finalizers(namespace) if each != FINALIZER]
        try:
            client.update(Object.from_dict(fields), "finalize")
        except NotFound:
            log.debug("namespace already gone", namespace=namespace.name)


def _finalizers(namespace: Object) -> list[str]:
    return namespace.to_dict().get("spec", {}).get("finalizers") or []


def _may_stay(obj: Object) -> bool:
    """Whether an object that was just deleted may still be there: finalizers hold it, or it has a grace period."""
    return bool(obj.metadata.finalizers) or (obj.resource == PODS and _is_scheduled(obj))


def _is_scheduled(pod: Object) -> bool:
    fields = pod.to_dict()
    return bool(fields.get("spec", {}).get("nodeName")) and not _is_finished(fields)


def _is_finished(pod: dict[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") in _FINISHED_PHASES


def _grace(pod: Object) -> float:
    fields = pod.to_dict()
    return 0.0 if _is_finished(fields) else float(fields["spec"].get("terminationGracePeriodSeconds") or 0)


def _unexpected(namespace: str, version: str, resource: Resource) -> str:
    group, _, number = version.rpartition("/")
    return (
        f"unexpected items still remain in namespace: {namespace} for gvr: {group}/{number}, Resource={resource.plural}"
    )


def _namespace_of_deleted(namespaces: Lister) -> Callable[[Change], Iterable[Key]]:
    """Return what enqueues a terminating namespace whose content has become less, or was held less tightly."""

    def keys(change: Change) -> Iterable[Key]:
        key = Key("", change.object.namespace)
        namespace = namespaces.get(key)
        return (key,) if namespace is not None and namespace.is_terminating else ()

    return keys


def _terminating(change: Change) -> Iterable[Key]:
    if change.type is EventType.DELETED or change.new is None or not change.new.is_terminating:
        return ()
    return (change.new.key,)


class _CustomContent:
    """Has the controller empty namespaces of the instances of definitions, too."""

    def __init__(
        self,
        content: dict[Resource, tuple[str, Lister]],
        controller: Controller,
        to_keys: Callable[[Change], Iterable[Key]],
    ) -> None:
        self._content = content
        self._controller = controller
        self._to_keys = to_keys

    def begin(self, definition: Definition, resource: Resource, instances: Informer) -> None:
        """List instances, and hear of what becomes of them."""
        if definition.namespaced:
            if resource not in self._content:
                self._controller.watch(Watch(instances, self._to_keys))
            version = f"{definition.group}/{definition.storage.name}"
            self._content[resource] = (version, instances.lister)

    def end(self, definition: Definition, resource: Resource) -> None:
        """Go on listing: there is nothing any more, and may be again."""


def build(context: ControllerContext, options: Options) -> Controller:
    """Build it from what its descriptor declares."""
    informers = context.informers
    namespaces = informers.informer(NAMESPACES)
    kinds = {
        kind.storage: kind.gvk.api_version
        for kind in context.engine.kinds
        if kind.namespaced and kind.storage == kind.resource and "delete" in kind.verbs
    }
    content = {resource: informers.informer(resource) for resource in kinds}
    listers = {resource: (kinds[resource], informer.lister) for resource, informer in content.items()}
    of_deleted = _namespace_of_deleted(namespaces.lister)
    controller = assemble(
        DESCRIPTOR,
        context,
        NamespaceReconciler(informers, listers, clock=context.clock, grace=options.namespace_deletion_grace),
        [Watch(namespaces, _terminating), *(Watch(informer, of_deleted) for informer in content.values())],
        workers=options.concurrent_namespace_syncs,
    )
    follow_definitions(informers, _CustomContent(listers, controller, of_deleted))
    return controller

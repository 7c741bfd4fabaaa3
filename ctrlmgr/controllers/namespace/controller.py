"""The namespace controller: deletes the content of a terminating namespace, and then removes the namespace's finalizer.

Guarantees:

- The controller deletes only objects of the terminating namespace. The precondition of every deletion is the object's
  uid, so a new object of the same name is not deleted. If a new namespace of the same name exists, its content is not
  deleted.
- Pods are deleted first, and no other object is deleted while a pod exists (KEP-5080, ordered namespace deletion).
- The `kubernetes` finalizer is removed only after a pass that found no object of any kind. The namespace already
  accepts no new objects during that pass.
- The five conditions of the namespace report the remaining content and the reasons, and are written only when they
  change.
- As in Kubernetes, the content is deleted only after a grace period of some seconds, so that clients that have just
  read the namespace can finish.

The deletion of content triggers the next reconcile of the namespace. The controller uses timers only for the grace
periods of the namespace and its pods.
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
from ctrlmgr.controllers.namespace.deletion_conditions import Content, desired_conditions
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
"""The number of seconds until the retry if the content of a namespace was listed during a sync."""


class _RemainingObjects(NamedTuple):
    """The remaining objects of one kind, and the longest grace period of these objects in seconds."""

    objects: Sequence[Object]
    grace: float = 0.0


class _NamespaceChanged(Exception):
    """Raised if the listed objects may belong to another namespace of the same name."""


class NamespaceReconciler:
    """Reconciles namespaces: deletes their content, and reports the remaining content."""

    def __init__(
        self, informers: Informers, content: dict[Resource, tuple[str, Lister]], *, clock: Clock, grace: float
    ) -> None:
        """Create a reconciler that deletes the objects of all kinds in `content`.

        For every namespaced resource, `content` contains the API version (such as `apps/v1`) and the lister. The
        argument `grace` is the time (seconds) after a namespace's deletion during which its content is kept.
        """
        self._informers = informers
        self._namespaces = informers.informer(NAMESPACES).lister
        self._pods = content[PODS][1]
        self._content = content
        self._clock = clock
        self._grace = grace
        # The time (monotonic seconds) when each terminating namespace was first seen, keyed by the namespace's uid. The
        # grace period of the namespace starts at that time.
        self._seen: dict[str, float] = {}

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Perform the next step of the deletion of a terminating namespace."""
        namespace = self._namespaces.get(key)
        if namespace is None or not namespace.is_terminating or FINALIZER not in _finalizers(namespace):
            if namespace is not None:
                self._seen.pop(namespace.uid, None)
            return None
        if wait := self._grace_of(namespace):
            return Result(requeue_after=wait)
        try:
            found, wait = self._empty(namespace, client)
        except _NamespaceChanged:
            return Result(requeue_after=_SYNCING)
        namespace = self._report(namespace, found or Content(), client)
        if found is None:
            self._let_go(namespace, client)
            self._seen.pop(namespace.uid, None)
            return None
        return Result(requeue_after=wait) if wait else None

    def _grace_of(self, namespace: Object) -> float:
        """Return the remaining seconds of a namespace's grace period.

        The remaining time is rounded to microseconds, because a clock cannot wait for rounding errors of floats.
        """
        now = self._clock.monotonic()
        return max(round(self._seen.setdefault(namespace.uid, now) + self._grace - now, 6), 0.0)

    def _empty(self, namespace: Object, client: Client) -> tuple[Content | None, float]:
        """Delete the content of a terminating namespace, in one pass over all kinds.

        The method returns two values. The first value is the remaining content, or None if no content remains. The
        second value is the number of seconds until the retry, or 0 if no retry is needed.
        """
        content = Content()
        epoch = self._informers.epoch
        pods = self._delete_all(PODS, namespace, epoch, client)
        if pods.objects:
            wait = self._grace_left(namespace, pods)
            if not wait and not any(pod.metadata.finalizers for pod in pods.objects):
                content.failures.append(_unexpected(namespace.name, "v1", PODS))
            return content, wait
        left = 0
        # The dictionary can grow during the loop, because new CustomResourceDefinitions are added to it.
        for resource, (version, _) in list(self._content.items()):
            kept = self._delete_all(resource, namespace, epoch, client)
            content.add(kept.objects)
            left += len(kept.objects)
            if kept.objects and not any(obj.metadata.finalizers for obj in kept.objects):
                content.failures.append(_unexpected(namespace.name, version, resource))
        return (content if left else None), 0.0

    def _list(self, resource: Resource, namespace: Object, epoch: int) -> Sequence[Object]:
        """Return the objects of one kind in this namespace.

        Raises `_NamespaceChanged` if the listed objects may belong to another namespace of the same name. The caches
        follow the log in order. Therefore, if the namespace still exists after the controller has listed its content,
        the content belongs to the namespace. Only during a sync, this conclusion is wrong, because the sync replaces
        one cache after another.
        """
        objects = self._content[resource][1].list(namespace.name)
        current = self._namespaces.get(namespace.key)
        if current is None or current.uid != namespace.uid or epoch % 2 or epoch != self._informers.epoch:
            raise _NamespaceChanged
        return objects

    def _delete_all(self, resource: Resource, namespace: Object, epoch: int, client: Client) -> _RemainingObjects:
        """Delete the objects of one kind; return the objects that remain."""
        kept = []
        for obj in self._list(resource, namespace, epoch):
            if not obj.is_terminating:
                try:
                    client.delete(obj)
                except (NotFound, Conflict):
                    continue  # The object was deleted or replaced; the informer will report it.
                if not _may_stay(obj):
                    continue
            kept.append(obj)
        return _RemainingObjects(kept, max(map(_grace, kept), default=0.0) if resource == PODS else 0.0)

    def _grace_left(self, namespace: Object, pods: _RemainingObjects) -> float:
        deleted_at = parse_time(namespace.metadata.deletion_timestamp or "") / 1_000_000
        return max(deleted_at + pods.grace - self._clock.now() / 1_000_000, 0.0)

    def _report(self, namespace: Object, content: Content, client: Client) -> Object:
        """Update the conditions of the namespace if the conditions have changed; return the current namespace."""
        fields = namespace.to_dict()
        status: dict[str, Any] = fields.setdefault("status", {})
        before = status.get("conditions") or []
        desired = desired_conditions(content, before, format_time_seconds(self._clock.now()))
        if desired != before:
            status["conditions"] = desired
            return client.update(Object.from_dict(fields), "status")
        return namespace

    def _let_go(self, namespace: Object, client: Client) -> None:
        fields = namespace.to_dict()
        fields["spec"]["finalizers"] = [each for each in _finalizers(namespace) if each != FINALIZER]
        try:
            client.update(Object.from_dict(fields), "finalize")
        except NotFound:
            log.debug("namespace already deleted", namespace=namespace.name)


def _finalizers(namespace: Object) -> list[str]:
    return namespace.to_dict().get("spec", {}).get("finalizers") or []


def _may_stay(obj: Object) -> bool:
    """Return whether an object that was just deleted may still exist, because of finalizers or a grace period."""
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
    """Return a function that maps an object's change to its namespace's key if the namespace is terminating."""

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
    """Adds the instances of CustomResourceDefinitions to the content of namespaces."""

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
        """List and watch the instances of a CustomResourceDefinition."""
        if definition.namespaced:
            if resource not in self._content:
                self._controller.watch(Watch(instances, self._to_keys))
            version = f"{definition.group}/{definition.storage.name}"
            self._content[resource] = (version, instances.lister)

    def end(self, definition: Definition, resource: Resource) -> None:
        """Do nothing: a listing of the deleted kind returns no objects, and the kind may be created again."""


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
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

"""The ResourceQuota controller: keeps the usage of each namespace in the status of the namespace's ResourceQuotas.

Guarantees:
- When an object is created, admission adds it to the usage in the same append. This controller corrects the usage when
  objects were deleted, have ended, need less or have left a scope. The controller also corrects the usage when a quota
  is created or changed, and periodically.
- The controller never overwrites an addition by admission that the controller has not counted yet. Each addition by
  admission changes the revision of the quota, and the controller writes only if the quota still has the revision that
  was read.
- Writes that were admitted before a quota existed may still be in progress. Therefore a new quota is counted again a
  few times.
- Objects of all kinds are counted, including custom kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ctrlmgr.admission.plugins.quota_enforcement import QUOTAS
from ctrlmgr.admission.quota.charging import Quota
from ctrlmgr.admission.quota.evaluator import Evaluator
from ctrlmgr.admission.quota.evaluators import Evaluators
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.custom_kinds import follow_definitions
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.resourcequota import DESCRIPTOR, Options
from ctrlmgr.controllers.resourcequota.decide import changes_use, counted, differs
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.informer import Change, Informer, Lister
from ctrlmgr.manager import Controller, Result, Watch

_AGAIN: Final = (1.0, 5.0, 30.0)
"""The numbers of seconds until each recount of a quota whose limits are new or have changed."""


class QuotaCounter:
    """Reconciles ResourceQuotas."""

    def __init__(self, quotas: Lister, *, clock: Clock, period: float) -> None:
        """Create a reconciler that reads `quotas`, and counts each quota's usage at least every `period` seconds."""
        self._quotas = quotas
        self._clock = clock
        self._period = period
        self._evaluators = Evaluators()
        self._counted: dict[Resource, tuple[Evaluator, Lister]] = {}
        self._left: dict[Key, list[float]] = {}
        """The remaining delays, in seconds, until new quotas are counted again. No lock is needed, because only one
        worker uses a key at a time.
        """

    def count(self, resource: Resource, objects: Lister) -> Evaluator | None:
        """Start counting the objects of a resource.

        Return the evaluator of the resource; None if no quota counts the resource.
        """
        evaluator = self._evaluators.of(resource)
        if evaluator is not None:
            self._counted = {
                **self._counted,
                resource: (evaluator, objects),
            }  # The dictionary is replaced and not changed, because workers read it concurrently.
        return evaluator

    def forget(self, resource: Resource) -> None:
        """Stop counting the objects of a resource."""
        self._counted = {each: found for each, found in self._counted.items() if each != resource}

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Write the usage if it differs from the quota's status; raises the errors of `client` if the write fails."""
        obj = self._quotas.get(key)
        if obj is None:
            self._left.pop(key, None)
            return None
        quota, found = Quota(obj), self._counted
        status = counted(
            quota,
            [evaluator for evaluator, _ in found.values()],
            lambda evaluator: found[evaluator.resource][1].list(key.namespace),
            self.now(),
        )
        if differs(quota, status):
            client.update(quota.with_status(status.hard, status.used), "status")
            if quota.hard != status.hard:
                self._left[key] = list(_AGAIN)
        left = self._left.get(key)
        if left:
            return Result(requeue_after=left.pop(0))
        self._left.pop(key, None)
        return Result(requeue_after=self._period)

    def now(self) -> str:
        """Return the current time as RFC 3339."""
        return format_time_seconds(self._clock.now())

    def quota_changed(self, change: Change) -> Iterable[Key]:
        """Return the key of the changed quota if the quota is new or its limits have changed; otherwise nothing."""
        new, old = change.new, change.old
        if new is None:
            return ()
        if old is not None and Quota(old).wanted == Quota(new).wanted and Quota(new).is_counted:
            return ()
        return (new.key,)

    def freed(self, evaluator: Evaluator, change: Change) -> Iterable[Key]:
        """Return the keys of the quotas that an object's change affects.

        A new object affects no quota, because admission has counted it.
        """
        if change.old is None:
            return ()
        quotas = [Quota(each) for each in self._quotas.list(change.old.namespace)]
        if not quotas:
            return ()
        return [each.object.key for each in changes_use(quotas, evaluator, change.old, change.new, self.now())]


class _Kinds:
    """Counts the objects of all kinds, including custom kinds."""

    def __init__(self, counter: QuotaCounter, quotas: Lister) -> None:
        self._counter = counter
        self._quotas = quotas
        self._custom: set[Resource] = set()
        self.controller: Controller | None = None

    def watch(self, resource: Resource, informer: Informer) -> Watch | None:
        """Return a watch on the objects of a resource; None if no quota counts these objects."""
        evaluator = self._counter.count(resource, informer.lister)
        if evaluator is None:
            return None
        return Watch(informer, lambda change: self._counter.freed(evaluator, change))

    def begin(self, definition: Definition, resource: Resource, instances: Informer) -> None:
        """Start counting the instances of a CustomResourceDefinition."""
        if not definition.namespaced or resource in self._custom:
            return
        self._custom.add(resource)
        watch = self.watch(resource, instances)
        if watch is not None and self.controller is not None:
            self.controller.watch(watch)
            for quota in self._quotas.list(None):
                self.controller.queue.add(quota.key)

    def end(self, definition: Definition, resource: Resource) -> None:
        """Stop counting the instances of a deleted custom kind."""
        self._counter.forget(resource)
        self._custom.discard(resource)


def _counted(kinds: Kinds) -> Sequence[Resource]:
    """Return the stored resources of namespaced built-in kinds."""
    found = {kind.storage for kind in kinds if kind.namespaced and not kind.is_custom and "delete" in kind.verbs}
    return sorted(found)


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    informers = context.informers
    quotas = informers.informer(QUOTAS)
    counter = QuotaCounter(quotas.lister, clock=context.clock, period=options.resource_quota_sync_period)
    every = _Kinds(counter, quotas.lister)
    watches = [Watch(quotas, counter.quota_changed)]
    for resource in _counted(context.engine.kinds):
        watch = every.watch(resource, informers.informer(resource))
        if watch is not None:
            watches.append(watch)
    workers = options.concurrent_resource_quota_syncs
    controller = assemble(DESCRIPTOR, context, counter, watches, workers=workers, reads_own_writes=True)
    every.controller = controller
    follow_definitions(informers, every)
    return controller

"""Sets the replicas of what autoscalers point at, by what is measured of its pods.

Guarantees, Kubernetes' (`pkg/controller/podautoscaler/horizontal.go`):
- Every autoscaler is looked at once a period, not more often, whatever happens to it.
- It scales anything that has the subresource `scale`, and only through that.
- When several autoscalers count the same pods, none of them scales, and each says so.
- What goes wrong is in a condition and an Event, and tried again in the next period.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.horizontal_pod_autoscaler import DESCRIPTOR, Options
from ctrlmgr.controllers.horizontal_pod_autoscaler.limits import Memory
from ctrlmgr.controllers.horizontal_pod_autoscaler.look import Look, Problem, Selectors, Surroundings
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics import MetricsClient, Served
from ctrlmgr.controllers.horizontal_pod_autoscaler.views import AUTOSCALERS
from ctrlmgr.engine.kind import Kind
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch, own_key

log = structlog.get_logger(__name__)


class AutoscalerReconciler:
    """A reconciler whose key is a HorizontalPodAutoscaler's."""

    def __init__(
        self,
        autoscalers: Lister,
        surroundings: Surroundings,
        metrics: Callable[[EngineClient], MetricsClient],
        *,
        clock: Clock,
    ) -> None:
        """Make what metrics come from with `metrics`, of the client of a reconcile."""
        self._autoscalers = autoscalers
        self._around = surroundings
        self._metrics = metrics
        self._clock = clock
        # By key; a key is reconciled by one worker at a time, and dictionaries take care of themselves.
        self._memories: dict[Key, Memory] = {}

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Measure, decide, scale; what the API refuses is tried again in the next period."""
        obj = self._autoscalers.get(key)
        if obj is None:
            self._memories.pop(key, None)
            self._around.selectors.forget(key)
            return None
        memory = self._memories.setdefault(key, Memory())
        look = Look(obj, self._around, memory, client, self._metrics(client), self._clock.now())
        try:
            look.autoscale()
        except Problem as problem:
            log.info("autoscaling failed", key=str(key), problem=str(problem))
        look.write_status()
        return Result(requeue_after=self._around.options.horizontal_pod_autoscaler_sync_period)


def _served(kinds: Callable[[], Iterable[Kind]]) -> Callable[[EngineClient], MetricsClient]:
    """Return what makes a metrics client that reads PodMetrics where they are a kind that is served."""

    def made(client: EngineClient) -> MetricsClient:
        def pod_metrics(namespace: str) -> Iterable[Mapping[str, Any]] | None:
            wanted = ("metrics.k8s.io", "PodMetrics")
            kind = next((each for each in kinds() if (each.gvk.group, each.gvk.kind) == wanted), None)
            return None if kind is None else [each.to_dict() for each in client.list(kind, namespace)]

        return Served(pod_metrics)

    return made


def build(
    context: ControllerContext, options: Options, metrics: Callable[[EngineClient], MetricsClient] | None = None
) -> Controller:
    """Build it from what its descriptor declares.

    `metrics` says where metrics come from, by default from PodMetrics among what is served.
    """
    autoscalers, pods = context.informers.informer(AUTOSCALERS), context.informers.informer(PODS)
    selectors = Selectors()

    def kinds() -> Iterable[Kind]:
        return context.engine.kinds

    def changed(change: Change) -> Iterable[Key]:
        if change.new is None:
            selectors.forget(change.object.key)  # its pods are the others' at once
        return own_key(change)

    surroundings = Surroundings(pods.lister, kinds, selectors, context.recorder(DESCRIPTOR), options)
    return assemble(
        DESCRIPTOR,
        context,
        AutoscalerReconciler(autoscalers.lister, surroundings, metrics or _served(kinds), clock=context.clock),
        [Watch(autoscalers, changed, delay=options.horizontal_pod_autoscaler_sync_period)],
        workers=options.concurrent_horizontal_pod_autoscaler_syncs,
    )

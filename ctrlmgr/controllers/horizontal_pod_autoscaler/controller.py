"""The HorizontalPodAutoscaler controller: sets the number of replicas of scale targets according to metrics.

Guarantees, as in Kubernetes (`pkg/controller/podautoscaler/horizontal.go`):
- Every autoscaler is evaluated once in each period; changes of an autoscaler do not cause more evaluations.
- The controller scales any object with the subresource `scale`, and only through that subresource.
- If several autoscalers select the same pods, none of these autoscalers scales its target, and the status of each
  autoscaler reports the problem.
- If an evaluation fails, a condition and an Event report the failure, and the evaluation is retried in the next period.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import structlog

from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.client import EngineClient, InformerState
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.horizontal_pod_autoscaler import API_SERVICES, DESCRIPTOR, Options
from ctrlmgr.controllers.horizontal_pod_autoscaler.aggregated_metrics import Aggregated, MetricsServers
from ctrlmgr.controllers.horizontal_pod_autoscaler.autoscaling_pass import (
    AutoscalingPass,
    PassDependencies,
    Problem,
    Selectors,
)
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import MetricsClient
from ctrlmgr.controllers.horizontal_pod_autoscaler.scaling_limits import Memory
from ctrlmgr.controllers.horizontal_pod_autoscaler.view import AUTOSCALERS
from ctrlmgr.controllers.workloads.workload_metrics import DecisionMetrics
from ctrlmgr.engine.calls.call import Credentials
from ctrlmgr.engine.kind import Kind
from ctrlmgr.errors import SettingsError
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch, own_key

log = structlog.get_logger(__name__)


class AutoscalerReconciler:
    """Reconciles HorizontalPodAutoscalers."""

    def __init__(
        self,
        autoscalers: Lister,
        surroundings: PassDependencies,
        metrics: Callable[[EngineClient], MetricsClient],
        *,
        clock: Clock,
    ) -> None:
        """Create a reconciler that reads `autoscalers`.

        The function `metrics` takes the API client of a reconcile, and returns a metrics client.
        """
        self._autoscalers = autoscalers
        self._around = surroundings
        self._metrics = metrics
        self._clock = clock
        # The histories of recommendations, keyed by the autoscaler's key. No lock is needed, because only one worker
        # reconciles a key at a time, and dictionary operations are atomic.
        self._memories: dict[Key, Memory] = {}

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Evaluate an autoscaler and requeue it for the next period, even after an error of the API."""
        obj = self._autoscalers.get(key)
        if obj is None:
            self._memories.pop(key, None)
            self._around.selectors.forget(key)
            return None
        memory = self._memories.setdefault(key, Memory())
        counts = DecisionMetrics(self._clock)
        one_pass = AutoscalingPass(obj, self._around, memory, client, self._metrics(client), self._clock.now(), counts)
        try:
            one_pass.autoscale()
        except Problem as problem:
            log.info("autoscaling failed", key=str(key), problem=str(problem))
        one_pass.write_status()
        return Result(requeue_after=self._around.options.horizontal_pod_autoscaler_sync_period)


def _measuring(kinds: Callable[[], Iterable[Kind]], servers: MetricsServers) -> Callable[[EngineClient], MetricsClient]:
    """Return a factory of metrics clients.

    The clients query the servers of the metrics APIs; if there are no such servers, they read stored PodMetrics.
    """

    def made(client: EngineClient) -> MetricsClient:
        def pod_metrics(namespace: str) -> Iterable[Mapping[str, Any]] | None:
            desired = ("metrics.k8s.io", "PodMetrics")
            kind = next((each for each in kinds() if (each.gvk.group, each.gvk.kind) == desired), None)
            return None if kind is None else [each.to_dict() for each in client.list(kind, namespace)]

        return Aggregated(pod_metrics, servers, client.call, kinds)

    return made


def build(
    context: ControllerContext, options: Options, metrics: Callable[[EngineClient], MetricsClient] | None = None
) -> Controller:
    """Build the controller from its context and options.

    The function `metrics` returns metrics clients, by default for the servers of the metrics APIs. Raises
    `SettingsError` if a certificate cannot be read.
    """
    autoscalers, pods = context.informers.informer(AUTOSCALERS), context.informers.informer(PODS)
    selectors = Selectors()

    def kinds() -> Iterable[Kind]:
        return context.engine.kinds

    def changed(change: Change) -> Iterable[Key]:
        if change.new is None:
            # From now on, other autoscalers may select the deleted autoscaler's pods.
            selectors.forget(change.object.key)
        return own_key(change)

    servers = MetricsServers(
        context.informers.informer(API_SERVICES).lister.list,
        InformerState(context.informers, context.event_log),
        context.random,
        Credentials({}, _certificate(options)),
    )
    surroundings = PassDependencies(pods.lister, kinds, selectors, context.recorder(DESCRIPTOR), options)
    return assemble(
        DESCRIPTOR,
        context,
        AutoscalerReconciler(
            autoscalers.lister, surroundings, metrics or _measuring(kinds, servers), clock=context.clock
        ),
        [Watch(autoscalers, changed, delay=options.horizontal_pod_autoscaler_sync_period)],
        workers=options.concurrent_horizontal_pod_autoscaler_syncs,
    )


def _certificate(options: Options) -> bytes:
    """Return the client certificate and key for the servers of metrics APIs, in one PEM string.

    Return an empty string if no client certificate is configured.
    """
    files = [options.proxy_client_cert_file, options.proxy_client_key_file]
    if not any(files):
        return b""
    if not all(files):
        raise SettingsError("--proxy-client-cert-file and --proxy-client-key-file go together")
    try:
        return b"\n".join(Path(each).read_bytes() for each in files)
    except OSError as error:
        raise SettingsError(f"{error.filename}: {error.strerror}") from error

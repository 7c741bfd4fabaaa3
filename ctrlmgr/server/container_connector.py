"""Answers requests for running containers: through the kubelet of their node, or by the simulation.

Guarantees:
- Pods on simulated nodes are answered by the simulation, all others by the kubelet of their node.
- The connections to kubelets are loaded at the first request that needs them.
- Each connection is counted in `apiserver_longrunning_requests` while it is open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.pod_log_options import LogOptions, parse_log
from ctrlmgr.engine.strategy import View
from ctrlmgr.metrics import LONG_RUNNING
from ctrlmgr.server.connect_subresources import Runtime, has_no_log, node_of, unreachable
from ctrlmgr.server.container_logs import Logs
from ctrlmgr.server.presenting.responses import Response
from ctrlmgr.server.request import Request


class Kubelets(Protocol):
    """Passes requests for containers to kubelets."""

    async def log(self, request: Request, pod: Object, node: Object, options: LogOptions, *, is_checked: bool) -> None:
        """Answer with a container's log; `is_checked` says whether the kubelet's certificate is verified."""

    async def stream(self, request: Request, pod: Object, node: Object, part: str, options: Unstructured) -> None:
        """Answer exec, attach or portforward (`part`) with these connect options."""

    def close(self) -> None:
        """Close all connections to kubelets."""


class Simulated(Protocol):
    """Answers requests for streams of simulated pods."""

    async def stream(self, request: Request, pod: Object, node: Object, part: str, options: Unstructured) -> None:
        """Answer exec, attach or portforward (`part`) with these connect options."""

    def close(self) -> None:
        """End all streams."""


Make: TypeAlias = Callable[[], Kubelets]
"""Returns the connections to kubelets; called once, at the first request that needs them."""


class Connector:
    """Answers requests for running containers. Used on the event loop only."""

    def __init__(self, view: View, runtime: Runtime | None, make: Make | None) -> None:
        """Read nodes from `view`. Answer with `runtime` for simulated nodes, with what `make` returns for others."""
        self._view = view
        self._runtime = runtime
        self._make = make
        self._kubelets: Kubelets | None = None
        self._simulated: Simulated | None = None
        self._logs = Logs(view)

    def close(self) -> None:
        """End all connections. Those that start later end immediately."""
        self._logs.close()
        if self._simulated is not None:
            self._simulated.close()
        if self._kubelets is not None:
            self._kubelets.close()

    async def answer(self, request: Request, target: Target, part: str, obj: Object, options: Unstructured) -> None:
        """Answer a request for the subresource `part` of `obj`; raises the `ApiError` to answer with."""
        if target.kind.resource != PODS:
            raise unreachable(target, part, obj, self._view)
        with LONG_RUNNING.labels("CONNECT", "", "v1", "pods", part, "resource").track_inprogress():
            await self._pod(request, target, part, obj, options)

    async def _pod(self, request: Request, target: Target, part: str, pod: Object, options: Unstructured) -> None:
        if has_no_log(target, part, pod):
            await request.respond(Response(204, b"", ()))
            return
        node = node_of(pod, self._view)
        if not await self._is_simulated(request, pod, node, part, options):
            await self._on_kubelet(request, target, part, pod, node, options)

    async def _is_simulated(
        self, request: Request, pod: Object, node: Object | None, part: str, options: Unstructured
    ) -> bool:
        """Answer for a pod on a simulated node, and return True; return False for any other pod."""
        if self._runtime is None or node is None or part == "proxy" or not self._runtime.is_simulated(node):
            return False
        if part != "log":
            await self._streams(self._runtime).stream(request, pod, node, part, options)
            return True
        reading = self._runtime.logs(pod, node, parse_log(request.query, pod.name))
        if reading is not None:
            await self._logs.tell(request, reading, pod)
        return reading is not None

    def _streams(self, runtime: Runtime) -> Simulated:
        if self._simulated is None:
            from ctrlmgr.server.kubelets.simulated_streams import SimulatedStreams

            self._simulated = SimulatedStreams(runtime)
        return self._simulated

    async def _on_kubelet(
        self, request: Request, target: Target, part: str, pod: Object, node: Object | None, options: Unstructured
    ) -> None:
        if node is None or self._make is None or part == "proxy":
            raise unreachable(target, part, pod, self._view)
        if self._kubelets is None:
            self._kubelets = self._make()
        if part == "log":
            log_options = parse_log(request.query, pod.name)
            await self._kubelets.log(request, pod, node, log_options, is_checked=not log_options.skips_verification)
        else:
            await self._kubelets.stream(request, pod, node, part, options)

"""Serves requests for running containers, and proxy requests, through the node's kubelet or the simulation.

Guarantees:
- The simulation serves pods on simulated nodes, and the kubelet of the node serves all other pods.
- The code for kubelets is loaded at the first request that needs a kubelet.
- Each connection is counted in `apiserver_longrunning_requests` while it is open.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.pod_log_options import LogOptions, parse_log
from ctrlmgr.engine.strategy import View
from ctrlmgr.metrics import LONG_RUNNING
from ctrlmgr.server.connect_subresources import Runtime, has_no_log, node_of, unreachable
from ctrlmgr.server.container_logs import Logs
from ctrlmgr.server.presenting.responses import Response
from ctrlmgr.server.request import Request

if TYPE_CHECKING:  # for type checkers only, because these modules are imported at the first request that needs them
    from ctrlmgr.http.proxying.upstream_address import Upstream
    from ctrlmgr.http.proxying.upstream_pool import UpstreamPool
    from ctrlmgr.server.kubelets.kubelet_urls import KubeletUrl


class Kubelets(Protocol):
    """Forwards requests for containers to kubelets."""

    async def log(self, request: Request, pod: Object, node: Object, options: LogOptions, *, is_checked: bool) -> None:
        """Answer with a container's log; `is_checked` says whether the kubelet's certificate is verified."""

    async def stream(self, request: Request, pod: Object, node: Object, part: str, options: Unstructured) -> None:
        """Answer a request for exec, attach or portforward (`part`) with these connect options."""

    @property
    def pool(self) -> UpstreamPool:
        """The connections to kubelets, and the connections of proxies to other servers."""

    def url(self, node: Object) -> KubeletUrl:
        """Return the address of a node's kubelet; raises `UnknownError` if the node has no address."""

    def upstream(self, url: KubeletUrl) -> Upstream:
        """Return the kubelet of a node as the server to which a request is forwarded."""

    def close(self) -> None:
        """Close all connections to kubelets."""


class Simulated(Protocol):
    """Serves requests for streams of simulated pods."""

    async def stream(self, request: Request, pod: Object, node: Object, part: str, options: Unstructured) -> None:
        """Answer a request for exec, attach or portforward (`part`) with these connect options."""

    def close(self) -> None:
        """End all streams of simulated pods."""


class Proxy(Protocol):
    """Forwards requests to nodes, pods and Services."""

    async def answer(self, request: Request, target: Target, name: str, obj: Object, path: str) -> None:
        """Forward a proxy request to `obj`.

        `name` is the name in the request, and `path` is the path for the other server.
        """

    def close(self) -> None:
        """End all proxied requests."""


class Connection(NamedTuple):
    """The object to which a request connects."""

    name: str
    """The name in the URL path, which may include a scheme and a port."""
    part: str
    """The subresource."""
    obj: Object
    options: Unstructured
    """The connect options of the request; empty for a log."""


Make: TypeAlias = Callable[[], Kubelets]
"""A function that creates the connections to kubelets; the first request that needs a kubelet calls it."""


class Connector:
    """Serves requests for running containers and proxies. Used on the event loop's thread only."""

    def __init__(self, view: View, runtime: Runtime | None, make: Make | None, random: Random) -> None:
        """Create a connector that reads nodes from `view`.

        `runtime` serves pods on simulated nodes; the object that `make` returns serves pods on other nodes.

        `random` is used to choose endpoints of Services.
        """
        self._random = random
        self._view = view
        self._runtime = runtime
        self._make = make
        self._kubelets: Kubelets | None = None
        self._simulated: Simulated | None = None
        self._proxy: Proxy | None = None
        self._logs = Logs(view)

    def close(self) -> None:
        """Close all connections, and close connections that clients request later at once."""
        self._logs.close()
        if self._simulated is not None:
            self._simulated.close()
        if self._proxy is not None:
            self._proxy.close()
        if self._kubelets is not None:
            self._kubelets.close()

    async def answer(self, request: Request, target: Target, connection: Connection) -> None:
        """Serve a request for a running container or a proxy; raises `ApiError` if the response is an error."""
        plural, part, options = target.kind.resource.plural, connection.part, connection.options
        with LONG_RUNNING.labels("CONNECT", "", "v1", plural, part, "resource").track_inprogress():
            if part == "proxy":
                path = str(options.get("path", ""))
                await self._cluster_proxy().answer(request, target, connection.name, connection.obj, path)
            else:
                await self._pod(request, target, part, connection.obj, options)

    def _cluster_proxy(self) -> Proxy:
        if self._proxy is None:
            from ctrlmgr.server.proxies.cluster_proxy import ClusterProxy
            from ctrlmgr.server.proxies.simulated_kubelet import SimulatedKubelet

            pages = SimulatedKubelet(self._view, self._runtime, self._logs)
            self._proxy = ClusterProxy(self._view, self._runtime, self._made(), pages, self._random)
        return self._proxy

    def _made(self) -> Kubelets | None:
        """Return the connections to kubelets; None if this server has no connections to kubelets."""
        if self._kubelets is None and self._make is not None:
            self._kubelets = self._make()
        return self._kubelets

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
        """Serve a request for a pod on a simulated node and return True; return False for any other pod."""
        if self._runtime is None or node is None or not self._runtime.is_simulated(node):
            return False
        if part != "log":
            await self._streams(self._runtime).stream(request, pod, node, part, options)
            return True
        reading = self._runtime.logs(pod, node, parse_log(request.query, pod.name))
        if reading is not None:
            await self._logs.send_log(request, reading, pod)
        return reading is not None

    def _streams(self, runtime: Runtime) -> Simulated:
        if self._simulated is None:
            from ctrlmgr.server.kubelets.simulated_streams import SimulatedStreams

            self._simulated = SimulatedStreams(runtime)
        return self._simulated

    async def _on_kubelet(
        self, request: Request, target: Target, part: str, pod: Object, node: Object | None, options: Unstructured
    ) -> None:
        kubelets = self._made()
        if node is None or kubelets is None:
            raise unreachable(target, pod, self._view)
        if part == "log":
            log_options = parse_log(request.query, pod.name)
            await kubelets.log(request, pod, node, log_options, is_checked=not log_options.skips_verification)
        else:
            await kubelets.stream(request, pod, node, part, options)

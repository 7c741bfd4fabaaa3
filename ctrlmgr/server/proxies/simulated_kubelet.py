"""Serves the `proxy` of simulated nodes, with some pages of a kubelet.

| path | answer |
|---|---|
| `/healthz`, `/healthz/ping` | `ok` |
| `/pods`, `/runningpods/` | the pods of the node, as a PodList; only those that run |
| `/stats/summary` | the usage of the node and its pods |
| `/metrics` | the number of pods and containers that run |
| `/configz` | the part of the kubelet's configuration that the simulation has |
| `/containerLogs/NAMESPACE/POD/CONTAINER` | the log of a container |
| `/logs/` | an empty folder |

All other paths get a 404 response. Source: `pkg/kubelet/server/server.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.pod_log_options import parse_log
from ctrlmgr.engine.strategy import View
from ctrlmgr.http.framing import Header
from ctrlmgr.server.connect_subresources import Runtime
from ctrlmgr.server.container_logs import Logs
from ctrlmgr.server.presenting.responses import JSON_TYPE, TEXT_TYPE, Response
from ctrlmgr.server.request import Request

_HTML: Final[Header] = (b"content-type", b"text/html; charset=utf-8")
_LOGS: Final = 5
"""The number of segments in the path of a container's log."""


class SimulatedKubelet:
    """The pages of the kubelets of simulated nodes. Used on the event loop's thread only."""

    def __init__(self, view: View, runtime: Runtime | None, logs: Logs) -> None:
        """Create pages that read pods from `view`, and that send logs from `runtime` with `logs`."""
        self._view = view
        self._runtime = runtime
        self._logs = logs

    async def answer(self, request: Request, node: Object, path: str) -> None:
        """Serve a request for a path; raises `ApiError` if the page does not exist."""
        parts = path.split("/")
        if len(parts) == _LOGS and parts[1] == "containerLogs":
            await self._log(request, node, *parts[2:])
        else:
            await request.respond(self._page(node, path) or _not_found())

    def _page(self, node: Object, path: str) -> Response | None:
        match path.rstrip("/"):
            case "/healthz" | "/healthz/ping":
                return Response(200, b"ok", (TEXT_TYPE,))
            case "/pods":
                return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self._pods(node)})
            case "/runningpods":
                running = [pod for pod in self._pods(node) if _running(pod)]
                return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": running})
            case "/stats/summary":
                assert self._runtime is not None, "the node is simulated"
                return _json(self._runtime.summary(node, self._pods(node)))
            case "/metrics":
                return Response(200, _metrics(self._pods(node)).encode(), (TEXT_TYPE,))
            case "/configz":
                return _json({"kubeletconfig": _configuration(node)})
            case "/logs":
                return Response(200, b"<!doctype html>\n<pre>\n</pre>\n", (_HTML,))
        return None

    def _pods(self, node: Object) -> list[Unstructured]:
        """Return the pods of a node. Pods that do not mention the node are not decoded."""
        return [pod.to_dict() for pod in self._view.list(PODS) if _is_on(pod, node)]

    async def _log(self, request: Request, node: Object, namespace: str, name: str, container: str) -> None:
        pod = self._view.get(PODS, Key(namespace, name))
        if pod is None or not _is_on(pod, node) or self._runtime is None:
            await request.respond(Response(404, f'pod "{name}" does not exist\n'.encode(), (TEXT_TYPE,)))
            return
        options = parse_log({**request.query, "container": [container]}, name)
        reading = self._runtime.logs(pod, node, options)
        assert reading is not None, "the node is simulated"
        await self._logs.send_log(request, reading, pod)


def _is_on(pod: Object, node: Object) -> bool:
    return pod.mentions(node.name.encode()) and pod.view(Pod).spec.node_name == node.name


def _running(pod: Unstructured) -> Sequence[Any]:
    """Return the statuses of a pod's running containers."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return [each for each in statuses if (each.get("state") or {}).get("running") is not None]


def _metrics(pods: Sequence[Unstructured]) -> str:
    running = [len(_running(pod)) for pod in pods]
    return (
        "# HELP kubelet_running_containers [ALPHA] Number of containers currently running\n"
        "# TYPE kubelet_running_containers gauge\n"
        f'kubelet_running_containers{{container_state="running"}} {sum(running)}\n'
        "# HELP kubelet_running_pods [ALPHA] Number of pods that have a running pod sandbox\n"
        "# TYPE kubelet_running_pods gauge\n"
        f"kubelet_running_pods {sum(map(bool, running))}\n"
    )


def _configuration(node: Object) -> Unstructured:
    capacity = (node.to_dict().get("status") or {}).get("capacity") or {}
    return {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "maxPods": int(capacity.get("pods", 0)),
        "clusterDomain": "cluster.local",
        "enableServer": True,
    }


def _json(value: object) -> Response:
    return Response(200, msgspec.json.encode(value) + b"\n", (JSON_TYPE,))


def _not_found() -> Response:
    return Response(404, b"404 page not found\n", (TEXT_TYPE,))

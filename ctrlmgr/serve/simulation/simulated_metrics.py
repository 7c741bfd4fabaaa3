"""Runs the metrics server of simulated nodes, which serves `metrics.k8s.io` for `kubectl top` and autoscalers.

Guarantees:
- The metrics server listens on the loopback address with its own certificate, and accepts only requests of the front
  proxy of this API server.
- At each start, the metrics server creates or updates a Service with this machine's address, and an APIService with the
  metrics server's port. The metrics server does not change an APIService that another client has created.
- Only the leader runs the metrics server. Processes on other machines cannot reach the metrics server.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, SERVICES, Key
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.request_header import RequestHeaders
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.apiservices.availability import is_available
from ctrlmgr.controllers.simulated_nodes import Options
from ctrlmgr.controllers.simulated_nodes.behaviour_rules import Rules, read_behaviour
from ctrlmgr.controllers.simulated_nodes.resource_metrics import node_metrics, pod_metrics
from ctrlmgr.engine.aggregated_groups import API_SERVICES
from ctrlmgr.engine.calls.endpoint import SIMULATED
from ctrlmgr.errors import AlreadyExists, Conflict, NotFound
from ctrlmgr.http.front_proxy import NAME as FRONT_PROXY
from ctrlmgr.http.tls import ensure_certificates
from ctrlmgr.http.tls_context import ServingContext
from ctrlmgr.informer import Lister
from ctrlmgr.serve.controllers import Parts
from ctrlmgr.serve.front import Front
from ctrlmgr.server import HttpServer
from ctrlmgr.server.authn.authorities import AuthorityFiles
from ctrlmgr.server.authn.client_certificate_authenticator import FrontProxies
from ctrlmgr.server.metrics_api import GROUP, VERSION, MetricsApi

log = structlog.get_logger(__name__)

_NAMESPACE: Final = "kube-system"
_SERVICE: Final = "simulated-metrics-server"
_API_SERVICE: Final = f"{VERSION}.{GROUP}"
_LABEL: Final = "simulate.ctrlmgr.io/metrics"
_PRIORITY: Final = 100
"""The value of both priorities (group and version) in metrics-server's APIService."""
_RETRY: Final = 0.5
"""The seconds between two attempts to register the metrics server."""


class SimulatedMetrics:
    """A Runnable that serves the usage of simulated nodes and their pods, and registers itself with an APIService."""

    name = "simulated metrics server"

    def __init__(self, parts: Parts, front: Front, rules: Rules) -> None:
        """Read pods and nodes from the informers of `parts`.

        The caller must create the instance before informers sync.
        """
        settings = parts.settings
        self._clock = parts.clock
        self._client: Client = parts.apiserver_client()
        self._usage = _Usage(parts, rules)
        self._services = parts.informers.informer(SERVICES).lister
        self._api_services = parts.informers.informer(API_SERVICES).lister
        certificates = settings.data_path / "pki" / "simulated-metrics"
        self._files = ensure_certificates(certificates, [f"{_SERVICE}.{_NAMESPACE}.svc"], clock=parts.clock)
        authorities = AuthorityFiles("front proxy", [each for each in [front.front_proxy.authority_file] if each])
        headers = RequestHeaders(username=("X-Remote-User",), group=("X-Remote-Group",))
        self._authenticator = FrontProxies(authorities, (FRONT_PROXY,), headers, clock=parts.clock)
        self._is_registered = False

    def run(self, stop: threading.Event) -> None:
        """Serve the metrics until `stop` is set."""
        api = MetricsApi(self._usage.listed, self._authenticator)
        tls = ServingContext(self._files).context
        server = HttpServer(api, ("127.0.0.1", 0), clock=self._clock, tls=tls)
        while not stop.is_set() and not self._register(server.port):
            stop.wait(_RETRY)
        self._is_registered = True
        server.run(stop)

    def is_published(self) -> bool:
        """Return whether the metrics server is available, or another server serves the metrics of nodes."""
        service = self._api_services.get(Key("", _API_SERVICE))
        return self._is_registered and service is not None and (_LABEL not in service.labels or is_available(service))

    def _register(self, port: int) -> bool:
        """Create or update the Service and the APIService; return False if the caller must try again."""
        try:
            return self._ensure(self._services.get(Key(_NAMESPACE, _SERVICE)), _service()) and self._ensure(
                self._api_services.get(Key("", _API_SERVICE)), self._api_service(port)
            )
        except (AlreadyExists, Conflict, NotFound):  # A cache is outdated, or the namespace does not exist yet.
            return False

    def _ensure(self, current: Object | None, desired: Unstructured) -> bool:
        if current is None:
            self._client.create(Object.from_dict(desired))
        elif _LABEL not in current.labels:
            log.info("another server serves node metrics", name=current.name)
        else:
            spec = {**current.to_dict()["spec"], **desired["spec"]}
            self._client.update(Object.from_dict({**current.to_dict(), "spec": spec}).at(current.revision))
        return True

    def _api_service(self, port: int) -> Unstructured:
        bundle = base64.b64encode(self._files.authority.read_bytes()).decode()
        spec = {
            "group": GROUP,
            "version": VERSION,
            "groupPriorityMinimum": _PRIORITY,
            "versionPriority": _PRIORITY,
            "caBundle": bundle,
            "service": {"namespace": _NAMESPACE, "name": _SERVICE, "port": port},
        }
        metadata = {"name": _API_SERVICE, "labels": {_LABEL: "true"}}
        return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec}


class _Usage:
    """Computes the usage of simulated nodes and of the pods on simulated nodes."""

    def __init__(self, parts: Parts, rules: Rules) -> None:
        self._pods: Lister = parts.informers.informer(PODS).lister
        self._nodes: Lister = parts.informers.informer(NODES).lister
        self._clock: Clock = parts.clock
        self._rules = rules

    def listed(self, resource: str, namespace: str) -> Iterable[Unstructured]:
        """Return the metrics of `nodes` or `pods`; an empty namespace means all namespaces."""
        now, nodes = self._clock.now(), {node.name: node for node in self._nodes.list() if node.labels.get(SIMULATED)}
        pods: dict[str, list[dict[str, Any]]] = {}
        for pod in self._pods.list(namespace or None):
            fields = pod.to_dict()
            pods.setdefault(fields["spec"].get("nodeName", ""), []).append(fields)
        if resource == "nodes":
            return [node_metrics(node.to_dict(), pods.get(name, ()), self._rules, now) for name, node in nodes.items()]
        found = (pod_metrics(pod, self._rules, now) for name in nodes for pod in pods.get(name, ()))
        return [each for each in found if each is not None]


def _service() -> Unstructured:
    metadata = {"name": _SERVICE, "namespace": _NAMESPACE, "labels": {_LABEL: "true"}}
    spec = {"type": "ExternalName", "externalName": "localhost"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def simulated_metrics(parts: Parts, front: Front) -> Iterator[SimulatedMetrics]:
    """Yield the metrics server if there are simulated nodes and this server has its own front-proxy authority."""
    options = parts.settings.of(Options)
    if options.nodes and options.simulated_metrics and front.front_proxy.authority_file is not None:
        yield SimulatedMetrics(parts, front, read_behaviour(options))

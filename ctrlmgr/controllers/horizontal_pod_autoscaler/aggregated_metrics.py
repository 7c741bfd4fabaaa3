"""Fetches metrics from the servers that APIServices name, like Kubernetes' clients that use its aggregator.

Guarantees:
- If a group has several known versions, the version whose APIService has the highest priority is used.
- If no APIService of a group names a server, the group is absent. If the group of resource metrics is absent, stored
  PodMetrics are used.
- The front proxy headers of each request contain the user
  `system:serviceaccount:kube-system:horizontal-pod-autoscaler`. A server accepts these headers if it trusts this
  process's client certificate.

Paths and messages are the same as in `k8s.io/metrics/pkg/client` and `pkg/controller/podautoscaler/metrics/client.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource, group_of
from ctrlmgr.authentication.user import AUTHENTICATED
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.horizontal_pod_autoscaler import DESCRIPTOR
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import (
    MetricsError,
    PodMetric,
    PodMetrics,
    Served,
    container_metrics,
    milli,
    pod_metrics,
)
from ctrlmgr.engine.calls.call import Call, Credentials, Reply
from ctrlmgr.engine.calls.endpoint import endpoint_of
from ctrlmgr.engine.calls.replies import is_success, unexpected
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.engine.strategy import View
from ctrlmgr.golang.go_text import quote

_SECOND: Final = 1_000_000
_WINDOW: Final = 60 * _SECOND
"""The default window of a custom metric (`metricServerDefaultMetricWindow`)."""

_TIMEOUT: Final = 30.0
"""The timeout of a request, in seconds."""

_VERSIONS: Final[Mapping[str, Sequence[str]]] = {
    "metrics.k8s.io": ("v1beta1",),
    "custom.metrics.k8s.io": ("v1beta2", "v1beta1"),
    "external.metrics.k8s.io": ("v1beta1",),
}
"""The known versions of each group, the preferred version first."""

_UNAVAILABLE: Final = Reply(code=503, media_type="text/plain")
"""The reply that Kubernetes' aggregator sends if a server is unreachable."""

Calls = Callable[[Call], Reply]
T = TypeVar("T")


class _Described(msgspec.Struct, frozen=True):
    name: str = ""


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a MetricValue or an ExternalMetricValue that the controller reads."""

    value: str
    timestamp: str = ""
    window_seconds: int | None = None
    described_object: _Described = _Described()


class _Values(msgspec.Struct, frozen=True):
    items: list[_Value] = []


class _PodMetrics(msgspec.Struct, frozen=True):
    items: list[dict[str, Any]] = []


class MetricsServers:
    """Finds and queries the servers of the metrics APIs."""

    def __init__(
        self, api_services: Callable[[], Iterable[Object]], view: View, random: Random, credentials: Credentials
    ) -> None:
        """Create an instance that resolves the Services of the APIServices in `view`.

        The argument `credentials` contains the client certificate.
        """
        self._api_services = api_services
        self._view = view
        self._random = random
        user = DESCRIPTOR.as_user
        groups = [group for group in user.groups if group != AUTHENTICATED]
        names = {"X-Remote-User": user.name, "X-Remote-Group": ",".join([*groups, AUTHENTICATED])}
        self._credentials = credentials._replace(headers={**credentials.headers, **names})

    def has(self, group: str) -> bool:
        """Return whether an APIService of a group names a server."""
        return self._spec(group) is not None

    def ask(self, call: Calls, group: str, path: str, query: Mapping[str, str], about: str, type_: type[T]) -> T:
        """Return the reply of a group's server, decoded as `type_`.

        `about` describes the request in error messages. Raises `MetricsError`, with client-go's messages, if the
        request fails.
        """
        spec = self._spec(group) or {}
        where = {**spec.get("service", {}), "path": f"/apis/{group}/{spec.get('version')}/{path}"}
        endpoint = endpoint_of({"service": where, "caBundle": spec.get("caBundle")}, self._view, self._random)
        reply = _UNAVAILABLE
        if not endpoint.problem and not endpoint.is_simulated:
            desired = urlencode({name: value for name, value in query.items() if value})
            url = f"{endpoint.url}?{desired}" if desired else endpoint.url
            is_checked = not spec.get("insecureSkipTLSVerify")
            reply = call(
                Call(
                    url,
                    b"",
                    _TIMEOUT,
                    endpoint.ca_bundle,
                    endpoint.address,
                    self._credentials,
                    is_checked=is_checked,
                    method="GET",
                )
            )
        return _decoded(_UNAVAILABLE if reply.problem else reply, about, type_)

    def _spec(self, group: str) -> dict[str, Any] | None:
        """Return the spec of the APIService that is used for a group."""
        specs = (each.to_dict().get("spec") or {} for each in self._api_services())
        versions = _VERSIONS[group]
        found = [
            spec
            for spec in specs
            if spec.get("group") == group and spec.get("version") in versions and spec.get("service")
        ]
        return min(
            found, key=lambda each: (-each.get("versionPriority", 0), versions.index(each["version"])), default=None
        )


class Aggregated(Served):
    """The metrics of a cluster, from the servers of the metrics APIs or from stored PodMetrics."""

    def __init__(
        self,
        stored: Callable[[str], Iterable[Mapping[str, Any]] | None],
        servers: MetricsServers,
        call: Calls,
        kinds: Callable[[], Iterable[Kind]],
    ) -> None:
        """Create a client that queries `servers` with `call`.

        The function `stored` lists PodMetrics, like the function that `Served` needs. The function `kinds` returns the
        served kinds.
        """
        super().__init__(stored)
        self._servers = servers
        self._call = call
        self._kinds = kinds

    def resource(self, resource: str, namespace: str, selector: LabelSelector, container: str) -> PodMetrics:
        """Return the usage of a resource by each pod.

        If a `container` is given, only that container in each pod counts.
        """
        if not self._servers.has("metrics.k8s.io"):
            return super().resource(resource, namespace, selector, container)
        path, query = f"namespaces/{namespace}/pods", {"labelSelector": str(selector)}
        try:
            found = self._ask("metrics.k8s.io", path, query, "pods.metrics.k8s.io", _PodMetrics).items
        except MetricsError as error:
            raise MetricsError(f"unable to fetch metrics from resource metrics API: {error}") from error
        if not found:
            raise MetricsError("no metrics returned from resource metrics API")
        try:
            return container_metrics(found, resource, container) if container else pod_metrics(found, resource)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise MetricsError(f"unreadable metrics from resource metrics API: {error!r}") from error

    def pods(self, name: str, namespace: str, selector: LabelSelector, metric: LabelSelector) -> PodMetrics:
        """Return the values of a custom metric for each pod."""
        if not self._servers.has("custom.metrics.k8s.io"):
            return super().pods(name, namespace, selector, metric)
        query = {"labelSelector": str(selector), "metricLabelSelector": str(metric)}
        found = self._custom(f"namespaces/{namespace}/pods/*/{name}", query, "pods.custom.metrics.k8s.io *")
        if not found:
            raise MetricsError("no metrics returned from custom metrics API")
        return {each.described_object.name: _measured(each) for each in found}

    def object(self, name: str, namespace: str, described: Mapping[str, Any], metric: LabelSelector) -> int:
        """Return the value of a custom metric of an object; `described` has the object's apiVersion, kind and name."""
        if not self._servers.has("custom.metrics.k8s.io"):
            return super().object(name, namespace, described, metric)
        resource = self._resource(described)
        # An object that is a namespace is always the namespace of the autoscaler.
        if str(resource) == "namespaces":
            path, about = f"namespaces/{namespace}/metrics/{name}", f"metrics.custom.metrics.k8s.io {name}"
        else:
            path = f"namespaces/{namespace}/{resource}/{described.get('name', '')}/{name}"
            about = f"{resource}.custom.metrics.k8s.io {described.get('name', '')}"
        found = self._custom(path, {"metricLabelSelector": str(metric)}, about)
        if len(found) != 1:
            only = f"the custom metrics API server returned {len(found)} results when we asked for exactly one"
            raise MetricsError(f"unable to fetch metrics from custom metrics API: {only}")
        return _amount(found[0])

    def external(self, name: str, namespace: str, metric: LabelSelector) -> Sequence[int]:
        """Return all values of an external metric, from the server of the external metrics API."""
        if not self._servers.has("external.metrics.k8s.io"):
            return super().external(name, namespace, metric)
        path, query = f"namespaces/{namespace}/{name}", {"labelSelector": str(metric)}
        try:
            found = self._ask("external.metrics.k8s.io", path, query, f"{name}.external.metrics.k8s.io", _Values).items
        except MetricsError as error:
            raise MetricsError(f"unable to fetch metrics from external metrics API: {error}") from error
        if not found:
            raise MetricsError("no metrics returned from external metrics API")
        return [_amount(each) for each in found]

    def _custom(self, path: str, query: Mapping[str, str], about: str) -> list[_Value]:
        try:
            return self._ask("custom.metrics.k8s.io", path, query, about, _Values).items
        except MetricsError as error:
            raise MetricsError(f"unable to fetch metrics from custom metrics API: {error}") from error

    def _ask(self, group: str, path: str, query: Mapping[str, str], about: str, type_: type[T]) -> T:
        return self._servers.ask(self._call, group, path, query, about, type_)

    def _resource(self, described: Mapping[str, Any]) -> Resource:
        kind, version = str(described.get("kind", "")), str(described.get("apiVersion", ""))
        group = group_of(version)
        for each in self._kinds():
            if (each.gvk.group, each.gvk.kind) == (group, kind):
                return each.resource
        named = f"{kind}.{group}" if group else kind
        absent = f"unable to map kind {named} to resource: no matches for kind {quote(kind)} in group {quote(group)}"
        raise MetricsError(f"unable to fetch metrics from custom metrics API: {absent}")


def _measured(found: _Value) -> PodMetric:
    window = _WINDOW if found.window_seconds is None else found.window_seconds * _SECOND
    try:
        at = parse_time(found.timestamp) if found.timestamp else 0
    except ValueError as error:
        raise MetricsError(str(error)) from error
    return PodMetric(_amount(found), at, window)


def _amount(found: _Value) -> int:
    try:
        return milli(found.value)
    except ValueError as error:
        raise MetricsError(str(error)) from error


def _decoded(reply: Reply, about: str, type_: type[T]) -> T:
    if not is_success(reply):
        problem = unexpected(reply)
        raise MetricsError(problem if _is_status(reply.body) else f"{problem} (get {about})")
    try:
        return msgspec.json.decode(reply.body, type=type_)
    except msgspec.MsgspecError as error:
        raise MetricsError(str(error)) from error


def _is_status(body: bytes) -> bool:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return False
    return isinstance(found, dict) and found.get("kind") == "Status"

"""What is served where: for each shape of path, the kind it is about and the methods it takes.

Guarantees: what is not served is told apart as Kubernetes does it. A path that leads to no kind, or to no place where
that kind can be, is 404; a place that exists but does not take the method is 405 (without `Allow`, as there).
Endpoints are found once and kept: kinds may be added, never taken away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ctrlmgr.errors import MethodNotAllowed, NotFound, StatusDetails
from ctrlmgr.metrics import RequestMetrics, WatchMetrics
from ctrlmgr.resources.kind import Kind, Subresource
from ctrlmgr.resources.kinds import Kinds
from ctrlmgr.server.access import Attributes
from ctrlmgr.server.negotiation import Accepts
from ctrlmgr.server.responses import warnings
from ctrlmgr.server.routes import ResourcePath

_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCE = {**_OBJECT, "POST": "create"}
_METHOD_NAMES = {"create": "POST", "update": "PUT"}
"""What a verb is called in metrics, where that is not itself."""

_CONNECT = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources that pass a request on to something that runs."""


_DEPRECATED = {
    ("", "v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "v1", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
}
"""What everybody is told who has to do with these kinds (apiserver `pkg/endpoints/deprecation`)."""


class Endpoint:
    """One shape of path: its kind, the verbs that its methods stand for, and what goes with them."""

    def __init__(self, kind: Kind, subresource: Subresource | None, verbs: Mapping[str, str]) -> None:
        """Serve `verbs`, by method."""
        self.kind = kind
        self.subresource = subresource
        self.connects = subresource is not None and subresource.name in _CONNECT
        """Whether requests are for what runs somewhere, not for what is stored."""
        is_kept = kind.verbs != {"create"}  # unlike a review, which is answered and forgotten
        self.accepts = Accepts(lists="list" in verbs.values(), transforms=subresource is None and is_kept)
        self.headers = warnings([_DEPRECATED.get(kind.gvk, "")])
        """What every answer has besides its own headers."""
        self._verbs = verbs
        self._name = (*kind.gvk[:2], kind.resource.plural)
        self._metrics: dict[tuple[str, bool], RequestMetrics] = {}
        self._watch_metrics: WatchMetrics | None = None

    def verb(self, method: str) -> str:
        """Return what a method means here; raises `MethodNotAllowed`."""
        verb = self._verbs.get(method)
        if verb is None:
            raise MethodNotAllowed(details=StatusDetails())
        return verb

    def metrics(self, path: ResourcePath, verb: str, *, dry_run: bool = False) -> RequestMetrics:
        """Return what requests like this are counted with."""
        metrics = self._metrics.get((verb, dry_run))
        if metrics is None:
            group, version, plural = self._name
            part = self.subresource.name if self.subresource is not None else ""
            name = _METHOD_NAMES.get(verb, verb).upper()
            metrics = RequestMetrics(name, group, version, plural, part, _scope(path), "All" if dry_run else "")
            self._metrics[verb, dry_run] = metrics
        return metrics

    def watch_metrics(self, path: ResourcePath) -> WatchMetrics:
        """Return what watches like this are counted with."""
        if self._watch_metrics is None:
            self._watch_metrics = WatchMetrics(*self._name, _scope(path))
        return self._watch_metrics


class Endpoints:
    """Finds endpoints."""

    def __init__(self, kinds: Kinds) -> None:
        """Serve `kinds`."""
        self._kinds = kinds
        self._found: dict[tuple[str, str, str, str, bool, bool, bool], Endpoint] = {}

    def find(self, path: ResourcePath) -> Endpoint | None:
        """Return what is served at a path, None if nothing is."""
        group, version, resource, namespace, name, subresource, rest, watch = path
        shape = (group, version, resource, subresource, bool(namespace), bool(name), watch)
        endpoint = self._found.get(shape)
        if endpoint is None:
            endpoint = self._endpoint(path)
            if endpoint is None:
                return None
            self._found[shape] = endpoint
        return None if rest and not endpoint.connects else endpoint

    def _endpoint(self, path: ResourcePath) -> Endpoint | None:
        kind = self._kinds.find(path.group, path.version, path.resource)
        if kind is None or not _is_place_of(kind, path):
            return None
        subresource = kind.subresources.get(path.subresource) if path.subresource else None
        if path.watch:
            verbs = _served({"GET": "watch"}, kind.verbs) if not path.subresource else {}
        elif path.subresource:
            verbs = _served(_SUBRESOURCE, subresource.verbs) if subresource is not None else {}
        elif path.name:
            verbs = _served(_OBJECT, kind.verbs)
        else:
            everywhere = kind.namespaced and not path.namespace
            verbs = _served({"GET": "list"} if everywhere else _COLLECTION, kind.verbs)
        return Endpoint(kind, subresource, verbs) if verbs else None


def unknown_resource() -> NotFound:
    """Return the 404 of a path below the API that leads to nothing."""
    return NotFound("the server could not find the requested resource", details=StatusDetails())


def attributes_of(method: str, path: str, resource: ResourcePath, query: Mapping[str, list[str]]) -> Attributes:
    """Return what a request is about, whether or not that exists (apiserver `request/requestinfo.go`)."""
    group, version, plural, namespace, name, subresource, _, watch = resource
    verb = "watch" if watch else _verb(method, name, query)
    return Attributes(verb, path, group, version, plural, subresource, namespace, name)


def _verb(method: str, name: str, query: Mapping[str, list[str]]) -> str:
    match method:
        case "GET" | "HEAD":
            if name:
                return "get"
            watch = query.get("watch")
            return "watch" if watch and watch[0].lower() not in ("false", "0") else "list"
        case "POST":
            return "create"
        case "PUT":
            return "update"
        case "PATCH":
            return "patch"
        case "DELETE":
            return "delete" if name else "deletecollection"
    return ""


def _scope(path: ResourcePath) -> str:
    """Return the scope of a request as metrics have it."""
    return "resource" if path.name else "namespace" if path.namespace else "cluster"


def _is_place_of(kind: Kind, path: ResourcePath) -> bool:
    """Whether objects of a kind can be where a path leads: namespaced ones in a namespace, others in none."""
    if kind.namespaced:
        return bool(path.namespace) or not path.name
    return not path.namespace or (path.resource == "namespaces" and path.namespace == path.name)


def _served(verbs: Mapping[str, str], served: Iterable[str]) -> dict[str, str]:
    served = frozenset(served)
    return {method: verb for method, verb in verbs.items() if verb in served}

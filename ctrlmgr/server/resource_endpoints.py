"""Maps each form of URL path to the kind that it addresses and the methods that it supports.

Guarantees: the errors for unknown paths equal those of Kubernetes. If no kind has the path, or if the path has a scope
that the kind does not have, the response is 404. If a valid path does not support the method, the response is 405. As
in Kubernetes, a 405 response has no `Allow` header. Resolved paths are cached until the kinds change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ctrlmgr.authorization.attributes import Attributes, path_attributes
from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.kind import Kind, Subresource
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Target
from ctrlmgr.errors import BadRequest, MethodNotAllowed, NotFound, StatusDetails
from ctrlmgr.metrics import RequestMetrics, WatchMetrics
from ctrlmgr.server.presenting.negotiation import Accepts
from ctrlmgr.server.presenting.responses import warnings
from ctrlmgr.server.query_selectors import SELECTING, selected
from ctrlmgr.server.routes import Location, ResourcePath, locate

_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCE = {**_OBJECT, "POST": "create"}
_PROXIED = {"HEAD": "get", "OPTIONS": "get"}
"""HTTP methods that a proxy supports and that do not correspond to a verb in discovery (`ConnectMethods`)."""
_METHOD_NAMES = {"create": "POST", "update": "PUT"}
"""The names that metrics use for verbs, if they differ from the verb."""

_READING = frozenset({"GET", "HEAD"})
_NAMED = frozenset({"update", "patch"})
"""Verbs that need a name in the path. Built-in kinds do not support these verbs on paths without an object's name."""
_CONNECT = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources whose requests go to a running process, not to a stored object."""

_SHOWN = frozenset({"scale", "status"})
"""Subresources that support tables and other representations, because their storage is a `rest.TableConvertor`."""


_PLACES: Final = 4096
"""Maximum number of paths whose endpoints are cached."""
_LONGEST: Final = 512
"""Maximum length in bytes of a path whose endpoint is cached."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The HTTP methods whose request attributes are cached. Other methods are not cached, because a client can send any
string as the method.
"""


class Endpoint:
    """One form of URL path, with the kind that it addresses and the verb of each HTTP method."""

    def __init__(
        self,
        kind: Kind,
        subresource: Subresource | None,
        verbs: Mapping[str, str],
        scope: str,
        *,
        lacks: bool = False,
        prefix: str = "",
    ) -> None:
        """Create an endpoint with `verbs`, by HTTP method.

        `scope` is `resource`, `namespace` or `cluster`, as in metrics. If `lacks` is set, the path names a subresource
        that a custom kind does not have, and the response is 404. The deprecated `prefix` of the path (`watch`,
        `proxy`) is the verb that the message of a 405 response contains.
        """
        self.lacks = lacks
        self._prefix = prefix
        self.kind = kind
        self.subresource = subresource
        self.is_served = bool(verbs)
        """Whether the endpoint supports any method."""
        self.connects = subresource is not None and subresource.name in _CONNECT
        """Whether requests connect to a running process instead of reading a stored object."""
        is_kept = kind.verbs != {"create"}  # a review is only answered and not stored
        transforms = is_kept if subresource is None else subresource.name in _SHOWN
        self.accepts = Accepts(lists="list" in verbs.values(), transforms=transforms, routed=not kind.is_custom)
        self.shown = kind.gvk if subresource is None else subresource.kind
        """The kind of the objects in the endpoint's responses."""
        self.headers = warnings([kind.deprecation])
        """Headers that every response has in addition to its own headers."""
        self._verbs = verbs
        self._scope = scope
        self._has_name = scope == "resource"
        self._name = (*kind.gvk[:2], kind.resource.plural)
        self._metrics: dict[tuple[str, bool], RequestMetrics] = {}
        self._watch_metrics: WatchMetrics | None = None

    def is_place_for(self, method: str) -> bool:
        """Return whether the path exists for an HTTP method.

        For a namespaced custom kind, the path across all namespaces exists only for reads.
        """
        everywhere = self._scope != "cluster" or not self.kind.is_custom or not self.kind.namespaced
        return everywhere or (method in _READING and self._prefix != "proxy")

    def serves(self, method: str) -> bool:
        """Return whether the endpoint supports the HTTP method."""
        return method in self._verbs

    def verb(self, method: str) -> str:
        """Return the verb of an HTTP method.

        Raises `MethodNotAllowed` if the method has no verb, and `BadRequest` if the verb needs a name that the path
        lacks.
        """
        verb = self._verbs.get(method)
        if verb is None:
            raise self._not_allowed(method)
        if verb in _NAMED and not self._has_name:
            raise BadRequest("name must be provided")
        return verb

    def _not_allowed(self, method: str) -> MethodNotAllowed:
        """Return the 405 error for an HTTP method.

        For custom kinds, the message is different, because Kubernetes' handler for custom kinds has no router.
        """
        resource = self.kind.resource
        if not self.kind.is_custom:
            return MethodNotAllowed(details=StatusDetails())
        verb = self._prefix or _SUBRESOURCE.get(method, "")
        details = StatusDetails(group=resource.group, kind=resource.plural)
        return MethodNotAllowed(f'{verb} is not supported on resources of kind "{resource}"', details=details)

    def metrics(self, verb: str, *, dry_run: bool) -> RequestMetrics:
        """Return the metrics of requests with this verb."""
        metrics = self._metrics.get((verb, dry_run))
        if metrics is None:
            part = self.subresource.name if self.subresource is not None else ""
            name = _METHOD_NAMES.get(verb, verb).upper()
            metrics = RequestMetrics(name, *self._name, part, self._scope, "All" if dry_run else "")
            self._metrics[verb, dry_run] = metrics
        return metrics

    @property
    def watch_metrics(self) -> WatchMetrics:
        """The metrics of watches with this form of path."""
        if self._watch_metrics is None:
            self._watch_metrics = WatchMetrics(*self._name, self._scope)
        return self._watch_metrics


class Place:
    """A URL path and its endpoint, shared by all requests for the path."""

    __slots__ = ("_attributes", "endpoint", "location", "target")

    def __init__(self, location: Location, endpoint: Endpoint | None = None) -> None:
        """Create a place from a location and its endpoint; the endpoint is None if the path is not served."""
        self.location = location
        self.endpoint = endpoint
        self.target: Target | None = None
        """The target of the engine's operation; None if the place has no endpoint."""
        self._attributes: dict[str, Attributes] = {}
        path = location.resource
        if endpoint is not None and path is not None:
            namespace = path.namespace if endpoint.kind.namespaced else ""
            self.target = Target(endpoint.kind, namespace, path.name, path.subresource)

    def attributes(self, method: str, query: Mapping[str, list[str]]) -> Attributes:
        """Return the authorization attributes of a request, even if its resource does not exist (`requestinfo.go`)."""
        attributes = self._attributes.get(method)
        if attributes is None:
            attributes = _attributes(self.location, method)
            if method in _METHODS:
                self._attributes[method] = attributes
        if not query or attributes.verb not in SELECTING:
            return attributes
        path = self.location.resource
        return attributes if path is None or path.prefix else selected(attributes, query)


class Places:
    """Resolves URL paths to places, and caches the places."""

    def __init__(self, kinds: Kinds) -> None:
        """Create a resolver for paths of `kinds`."""
        self._kinds = kinds
        self._endpoints: dict[tuple[str, str, str, str, bool, bool, str], Endpoint] = {}
        self._places: BoundedCache[bytes, Place] = BoundedCache("places", entries=_PLACES, largest=_LONGEST)
        self._epoch = kinds.epoch

    def find(self, raw_path: bytes) -> Place:
        """Return the `Place` of a URL path; `raw_path` is the path in the request line, without the query."""
        if self._epoch != self._kinds.epoch:
            self._epoch = self._kinds.epoch
            self._places.clear()
            self._endpoints = {shape: each for shape, each in self._endpoints.items() if self._is_served(each.kind)}
        place = self._places.get(raw_path)
        if place is None:
            place = self._place(locate(raw_path))
            if place.endpoint is not None:
                self._places.put(raw_path, place, len(raw_path))
        return place

    def _is_served(self, kind: Kind) -> bool:
        return self._kinds.find(kind.resource.group, kind.gvk.version, kind.resource.plural) is kind

    def _place(self, location: Location) -> Place:
        path = location.resource
        kind = self._kinds.find(path.group, path.version, path.resource) if path is not None else None
        if path is None or kind is None or not _is_place_of(kind, path):
            return Place(location)
        shape = (*path[:3], path.subresource, bool(path.namespace), bool(path.name), path.prefix)
        endpoint = self._endpoints.get(shape)
        if endpoint is None:
            endpoint = _endpoint(kind, path)
            # clients can send any subresource, so unknown subresources are not cached
            if not path.subresource or path.subresource in kind.subresources:
                self._endpoints[shape] = endpoint
        served = endpoint.is_served and (endpoint.connects or not path.rest)
        return Place(location, endpoint if served or kind.is_custom else None)


def _endpoint(kind: Kind, path: ResourcePath) -> Endpoint:
    if kind.is_custom:
        return _custom_endpoint(kind, path)
    subresource = kind.subresources.get(path.subresource)
    if path.subresource:
        verbs = _served(_SUBRESOURCE, subresource.verbs) if subresource is not None and not path.prefix else {}
        if path.subresource == "proxy" and verbs:
            verbs |= _PROXIED
    elif path.prefix == "proxy":
        verbs = {}
    elif path.watch:
        verbs = _served({"GET": "watch"}, kind.verbs)
    elif path.name:
        verbs = _served(_OBJECT, kind.verbs)
    else:
        everywhere = kind.namespaced and not path.namespace
        verbs = _served({"GET": "list"} if everywhere else _COLLECTION, kind.verbs)
    return Endpoint(kind, subresource, verbs, _scope(path))


def _custom_endpoint(kind: Kind, path: ResourcePath) -> Endpoint:
    """Return the endpoint of a custom kind.

    Custom kinds have verbs instead of routes (apiextensions-apiserver `crdHandler`).

    A HEAD request for a custom kind is handled like a GET, but built-in kinds have no route for HEAD.
    """
    subresource = kind.subresources.get(path.subresource)
    if path.subresource:
        verbs = _served(_OBJECT, subresource.verbs) if subresource is not None and not path.prefix else {}
    elif path.prefix == "proxy":
        verbs = {}
    elif path.watch:
        verbs = {"GET": "watch"}
    else:
        verbs = {**_OBJECT, "POST": "create"} if path.name else {**_OBJECT, **_COLLECTION}
    if "GET" in verbs:
        verbs = {**verbs, "HEAD": verbs["GET"]}
    lacks = bool(path.subresource) and subresource is None
    return Endpoint(kind, subresource, verbs, _scope(path), lacks=lacks, prefix=path.prefix)


def unknown_resource() -> NotFound:
    """Return the 404 error for a path of the API that addresses no resource."""
    return NotFound("the server could not find the requested resource", details=StatusDetails())


def _attributes(location: Location, method: str) -> Attributes:
    if location.resource is None:
        return path_attributes(method.lower(), location.path)
    group, version, plural, namespace, name, subresource, _, prefix = location.resource
    verb = prefix or _verb(method, name)
    return Attributes(verb, location.path, group, version, plural, subresource, namespace, name)


def _verb(method: str, name: str) -> str:
    """Return the verb of an HTTP method for an object, or for a collection if `name` is empty."""
    match method:
        case "GET" | "HEAD":
            return "get" if name else "list"
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
    """Return the scope of a request, in the form in which metrics contain it."""
    return "resource" if path.name else "namespace" if path.namespace else "cluster"


def _is_place_of(kind: Kind, path: ResourcePath) -> bool:
    """Return whether the path has the kind's scope: it must contain a namespace exactly if the kind is namespaced."""
    if kind.namespaced:
        return bool(path.namespace) or not path.name
    return not path.namespace or (path.resource == "namespaces" and path.namespace == path.name)


def _served(verbs: Mapping[str, str], served: Iterable[str]) -> dict[str, str]:
    served = frozenset(served)
    return {method: verb for method, verb in verbs.items() if verb in served}

"""Implements an extension API server for `metrics.k8s.io/v1beta1`, which serves the usage of pods and nodes.

Guarantees:
- The server accepts only requests of a front proxy that `authenticator` authenticates. The server does not authorize
  users, because the front proxy has authorized them.
- All kinds of this server are read-only. The server computes a list when a client requests the list, and applies label
  and field selectors.

Source: metrics-server `pkg/api`; errors are those of apiserver's generic handlers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from ctrlmgr.api import status_responses
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.errors import ApiError, MethodNotAllowed, NotFound, StatusDetails, Unauthorized
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.framing import Header
from ctrlmgr.server.authn.authenticator_interfaces import Authenticator, RequestParts
from ctrlmgr.server.request import parse_query
from ctrlmgr.server.routes import ResourcePath, locate

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
_API_VERSION: Final = f"{GROUP}/{VERSION}"
_JSON: Final[Header] = (b"content-type", b"application/json")
_GROUP_VERSION: Final = {"groupVersion": _API_VERSION, "version": VERSION}
_GROUP: Final = {"name": GROUP, "versions": [_GROUP_VERSION], "preferredVersion": _GROUP_VERSION}
_RESOURCES: Final = [
    {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]},
    {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]},
]
_PAGES: Final[Mapping[str, Unstructured]] = {
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
    f"/apis/{GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **_GROUP},
    f"/apis/{_API_VERSION}": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": _API_VERSION,
        "resources": _RESOURCES,
    },
}
_KINDS: Final = {"nodes": "NodeMetrics", "pods": "PodMetrics"}
List = Callable[[str, str], Iterable[Unstructured]]
"""A function that returns the metrics of a resource (`nodes`, `pods`) in a namespace; an empty namespace means all
namespaces.
"""


class MetricsApi:
    """The application of the extension server: a `http.server` Application. Used on its event loop's thread only."""

    def __init__(self, listed: List, authenticator: Authenticator) -> None:
        """Create an application that serves the metrics from `listed` to front proxies."""
        self._listed = listed
        self._authenticator = authenticator

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do nothing, because the application has no background work."""
        yield

    async def drain(self) -> None:
        """Do nothing, because the application has no long-running requests."""

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one HTTP request."""
        try:
            parts = RequestParts(exchange.headers, exchange.certificates)
            if await self._authenticator.authenticate(parts) is None:
                raise Unauthorized
            answer = self._answer(exchange)
        except ApiError as error:
            exchange.answer(error.code, [_JSON], status_responses.encode(status_responses.failure(error)))
            return
        exchange.answer(200, [_JSON], msgspec.json.encode(answer) + b"\n")

    def _answer(self, exchange: Exchange) -> Mapping[str, Any]:
        location = locate(exchange.path)
        if exchange.method != "GET":
            raise MethodNotAllowed(details=StatusDetails())
        page = _PAGES.get(location.path.rstrip("/"))
        if page is not None:
            return page
        path = location.resource
        if path is None or (path.group, path.version) != (GROUP, VERSION) or path.resource not in _KINDS:
            raise NotFound("the server could not find the requested resource", details=StatusDetails())
        query = parse_query(exchange.query)
        if query.get("watch", ["false"])[0] not in ("false", "0"):
            raise MethodNotAllowed(details=StatusDetails())
        return self._one(path) if path.name else self._list(path, query)

    def _one(self, path: ResourcePath) -> Unstructured:
        for each in self._listed(path.resource, path.namespace):
            if each["metadata"]["name"] == path.name:
                return each
        details = StatusDetails(name=path.name, group=GROUP, kind=path.resource)
        raise NotFound(f'{path.resource}.{GROUP} "{path.name}" not found', details=details)

    def _list(self, path: ResourcePath, query: Mapping[str, list[str]]) -> Unstructured:
        selector = LabelSelector.parse(query.get("labelSelector", [""])[0])
        found = self._listed(path.resource, path.namespace)
        items = [each for each in found if selector.matches(each["metadata"]["labels"])]
        head = {"kind": f"{_KINDS[path.resource]}List", "apiVersion": _API_VERSION, "metadata": {}}
        return {**head, "items": items}

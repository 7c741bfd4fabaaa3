"""Serves all URL paths that are not resources: health, metrics, the version, discovery, OpenAPI.

| path | answer |
|---|---|
| `/` | the list of paths |
| `/livez`, `/readyz`, `/healthz`, `/readyz/NAME` | the checks (`?verbose`, `?exclude=NAME`) |
| `/metrics` | Prometheus text, or OpenMetrics if the client accepts it |
| `/metrics/slis` | the results of the checks, as metrics |
| `/flagz`, `/statusz` | the flags and the status of this process (`zpages`) |
| `/version`, `/api`, `/apis` and paths below | the version, and discovery documents |
| `/openapi/v2`, `/openapi/v3` | OpenAPI documents |
| `/NAME/…` | a mounted page |

An unknown path gets the response of one of kube-apiserver's two routers: a `Status` within the API, otherwise plain
text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.errors import MethodNotAllowed, NotAcceptable, StatusDetails
from ctrlmgr.http.framing import Header
from ctrlmgr.server.describe.discovery_documents import Discovery, PeerGroups, RemoteVersions
from ctrlmgr.server.describe.document import Document
from ctrlmgr.server.describe.openapi import OpenAPI, RemoteSchemas
from ctrlmgr.server.describe.version_info import version_document
from ctrlmgr.server.pages.health import Health
from ctrlmgr.server.pages.service_level_indicators import indicators
from ctrlmgr.server.presenting.responses import NO_CACHE, NO_SNIFFING, PAGE_NOT_FOUND, Response, text
from ctrlmgr.server.request import Request
from ctrlmgr.server.resource_endpoints import unknown_resource
from ctrlmgr.server.routes import Location
from ctrlmgr.server.workers import Workers
from ctrlmgr.settings.metric_filters import exposed

Page: TypeAlias = Callable[[Request], Awaitable[Response]]
"""A function that responds to requests for one URL path."""

_NOT_ALLOWED = text(405, "Method Not Allowed\n", (b"allow", b"GET, HEAD"))
_FOREVER: Header = (b"cache-control", b"public, immutable")


class Pages:
    """Serves all URL paths that are not resources. Used on the event loop's thread only."""

    def __init__(
        self,
        health: Sequence[Health],
        registry: CollectorRegistry,
        kinds: Kinds,
        workers: Workers,
        *,
        server_address: str = "",
        more: Mapping[str, Page] | None = None,
        mounts: Mapping[str, Page] | None = None,
        unlisted: Mapping[str, Page] | None = None,
        remote: RemoteVersions | None = None,
        peers: PeerGroups | None = None,
        schemas: RemoteSchemas | None = None,
        swaggers: Callable[[], Sequence[Mapping[str, Any]]] = tuple,
        mounted_at: str = "",
    ) -> None:
        """Create the pages: health endpoints, the metrics of `registry`, and documents about `kinds`.

        `more` maps further URL paths to pages; `mounts` maps NAME to a page for all paths below `/NAME`.
        `unlisted` maps further URL paths to pages that the index of paths does not list.
        `server_address` is the address in discovery documents. `remote` contains the versions of extension servers, and
        `schemas` their OpenAPI documents; `swaggers` returns their OpenAPI v2 documents. `peers` contains the API
        groups of other serving processes. `mounted_at` is the start of all URL paths in links.
        """
        self._health = {endpoint.name: endpoint for endpoint in health}
        self._registry = registry
        self._indicators = indicators(health)
        self._kinds = kinds
        self._workers = workers
        self._discovery = Discovery(kinds, server_address, remote, peers)
        self._openapi = OpenAPI(kinds, schemas, swaggers, mounted_at=mounted_at)
        self._version = version_document()
        self._more = more or {}
        self._mounts = mounts or {}
        self._unlisted = unlisted or {}

    async def answer(self, request: Request) -> Response:
        """Return the response to a request that is not for a resource.

        Raises `NotFound`, `MethodNotAllowed` or `NotAcceptable` if no page serves the request.
        """
        location = request.location
        if location.parts is None:
            return self.not_found(location)
        match location.parts:
            case ():
                return _read_only(request) or self._root()
            case (name, *check) if name in self._health:
                # If a path is matched exactly, the same path with a final slash does not exist.
                ends = location.path.endswith("/")
                return PAGE_NOT_FOUND if ends else _healthy(self._health[name], "/".join(check), request.query)
            case ("metrics",) if not location.path.endswith("/"):
                return _read_only(request) or _metrics(exposed(self._registry), request)
            case ("metrics", "slis") if not location.path.endswith("/"):
                return _read_only(request) or _metrics(exposed(self._indicators), request)
            case ("version",):
                return _documented(request, self._version)
            case ("openapi", *_):
                return await self._described(request)
            case ("api" | "apis", *_):
                return await self._discovered(request)
            case (name, *_) if name in self._mounts:
                return await self._mounts[name](request)
        page = self._more.get(location.path) or self._unlisted.get(location.path)
        return await page(request) if page is not None else PAGE_NOT_FOUND

    def not_found(self, location: Location) -> Response:
        """Return the response for an unknown URL path; raises `NotFound` if the response is a `Status`."""
        parts = location.parts
        within = location.is_api if parts is None else parts[:1] == ("api",) or self._is_group(parts)
        if within:
            raise unknown_resource()
        return PAGE_NOT_FOUND

    def _is_group(self, parts: Sequence[str]) -> bool:
        return len(parts) > 1 and parts[0] == "apis" and self._kinds.has_builtin(parts[1])

    @property
    def paths(self) -> list[str]:
        """All URL paths that the server lists, sorted."""
        groups = [(f"/apis/{group.name}" if group.name else "/api", group.versions) for group in self._kinds.groups]
        versions = [f"{path}/{version}" for path, names in groups for version in names]
        checks = [f"/{name}/{check.name}" for name, endpoint in self._health.items() for check in endpoint.checks]
        paths = {path for path, _ in groups} | {f"/{name}" for name in self._health} | {*versions, *checks, *self._more}
        paths |= {f"/{name}" for name in self._mounts}
        paths |= {"/apis", "/metrics", "/metrics/slis", "/openapi/v2", "/openapi/v3", "/version"}
        return sorted(paths)

    def _root(self) -> Response:
        return Response(200, msgspec.json.format(msgspec.json.encode({"paths": self.paths}), indent=2))

    async def _discovered(self, request: Request) -> Response:
        accept, path = request.header(b"accept").decode("latin-1"), request.location.path
        document = self._discovery.made(path, accept)
        if document is None:  # creating a document takes long
            document = await self._workers.run(partial(self._discovery.answer, path, accept))
        if document is None:
            return self.not_found(request.location)
        return _documented(request, document, any_method=self._asks_for_no_method(request.location.parts or ()))

    def _asks_for_no_method(self, parts: Sequence[str]) -> bool:
        """Return whether Kubernetes' handler for this URL path ignores the method.

        Two handlers ignore the method: the aggregator's for groups (`apis_handler.go`), and the discovery of custom
        kinds (`customresource_discovery.go`).
        """
        return parts[:1] == ("apis",) and (len(parts) < 3 or not self._is_group(parts))

    async def _described(self, request: Request) -> Response:
        accept = request.header(b"accept").decode("latin-1")
        try:
            # Creating a document takes long.
            ask = partial(self._openapi.answer, request.location.path, request.query, accept)
            document = await self._workers.run(ask)
        except NotAcceptable:
            return text(406, "406 Not Acceptable\n")
        return PAGE_NOT_FOUND if document is None else _documented(request, document)


def _metrics(registry: CollectorRegistry, request: Request) -> Response:
    encode, content_type = choose_encoder(request.header(b"accept").decode("latin-1"))
    return Response(200, encode(registry), ((b"content-type", content_type.encode()), NO_CACHE, NO_SNIFFING))


def _read_only(request: Request) -> Response | None:
    return None if request.method in ("GET", "HEAD") else _NOT_ALLOWED


def _healthy(health: Health, check: str, query: Mapping[str, Sequence[str]]) -> Response:
    if check:
        found = health.report_one(check)
        if found is None:
            return PAGE_NOT_FOUND
    else:
        found = health.report(verbose="verbose" in query, exclude=query.get("exclude", []))
    ok, words = found
    return text(200 if ok else 500, words)


def _documented(request: Request, document: Document, *, any_method: bool = False) -> Response:
    """Return a document, or 304 if the client has it already; raises `MethodNotAllowed` unless it is a read."""
    if request.method != "GET" and not any_method:
        raise MethodNotAllowed(details=StatusDetails())
    headers: list[Header] = [(b"etag", document.etag.encode()), (b"vary", b"Accept, Accept-Encoding")]
    headers.append(_FOREVER if document.immutable else NO_CACHE)
    if request.header(b"if-none-match").decode("latin-1") == document.etag:
        return Response(304, b"", headers)
    headers.append((b"content-type", document.content_type.encode()))
    if document.gzipped is not None and request.accepts_gzip:
        return Response(200, document.gzipped, [*headers, (b"content-encoding", b"gzip")])
    return Response(200, document.body, headers)

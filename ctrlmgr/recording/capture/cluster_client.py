"""A client for a Kubernetes API server: discovery, lists in pages, and watches line by line.

Guarantees: all failures are raised as ctrlmgr's errors. The error is `Expired` for a compacted revision,
`ServiceUnavailable` if a retry may succeed, and otherwise the error with the response's status code. The client detects
a connection that is open but no longer transmits data.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import urllib3

from ctrlmgr import __version__
from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import ApiError, BadRequest, Expired, Forbidden, NotFound, ServiceUnavailable, Unauthorized
from ctrlmgr.settings.kubeconfig import Access

_PAGE = 500
_TIMEOUT = urllib3.Timeout(connect=10, read=60)
_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)  # Linux
    ),
]
_REFUSALS: dict[int, type[ApiError]] = {400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound}


class Served(NamedTuple):
    """A resource that the cluster serves."""

    resource: Resource
    path: str
    """The path of the resource's API version, such as `/api/v1` or `/apis/apps/v1`."""
    namespaced: bool
    short_names: tuple[str, ...] = ()

    def url(self, namespace: str) -> str:
        """Return the path of the resource's objects, in one namespace or in all namespaces."""
        inside = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{self.path}{inside}/{self.resource.plural}"


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    metadata: _ListMeta
    items: list[dict[str, msgspec.Raw]] | None = None


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


class Page(NamedTuple):
    """A complete list of a resource: the revision of the list, and all objects."""

    revision: Revision
    objects: list[Object]


_decode_list = msgspec.json.Decoder(_List).decode
_decode_status = msgspec.json.Decoder(_Status).decode
_decode_metadata = msgspec.json.Decoder(ObjectMeta).decode
_encode = msgspec.json.Encoder().encode
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class Cluster:
    """A client for one API server; thread-safe."""

    def __init__(self, access: Access, *, program: str = "ctrlmgr-record") -> None:
        """Create a client with the URL and credentials in `access` and the user agent `program`.

        The constructor sends no request.
        """
        self.server = access.server
        self.program = program
        self._access = access
        self._headers = {"user-agent": f"{program}/{__version__}", "accept": "application/json"}
        self._headers |= access.headers()
        options: dict[str, Any] = {"maxsize": 64, "block": False, "retries": False, "socket_options": _KEEPALIVE}
        options |= access.pool_options()
        self._pool: urllib3.PoolManager = (
            urllib3.ProxyManager(access.proxy, **options) if access.proxy else urllib3.PoolManager(**options)
        )

    def served(self) -> list[Served]:
        """Return every resource that can be listed and watched, in the preferred version of its group.

        Unavailable groups are skipped, for example the group of an extension server that is down.
        """
        found = self._served_by("/api/v1", "")
        for group in self._json("/apis").get("groups") or ():
            try:
                found += self._served_by(f"/apis/{group['preferredVersion']['groupVersion']}", group["name"])
            except (ServiceUnavailable, NotFound, Forbidden):
                continue
        return found

    def _served_by(self, path: str, group: str) -> list[Served]:
        return [
            Served(Resource(group, each["name"]), path, each["namespaced"], tuple(each.get("shortNames") or ()))
            for each in self._json(path).get("resources") or ()
            if {"list", "watch"} <= set(each["verbs"]) and "/" not in each["name"]
        ]

    def list(self, served: Served, namespace: str) -> Page:
        """Return all current objects of a resource; the client reads them in pages, all at the same revision."""
        revision, objects = 0, []
        for page in self._pages(served, namespace, "application/json"):
            head = {"kind": _encode(page.kind.removesuffix("List")), "apiVersion": _encode(page.api_version)}
            revision = int(page.metadata.resource_version)
            for item in page.items or ():
                fields = {name: msgspec.Raw(value) for name, value in head.items()} | item
                objects.append(Object.from_wire(_encode(fields)))
        return Page(revision, objects)

    def versions(self, served: Served, namespace: str) -> tuple[Revision, dict[Key, Revision]]:
        """Return the current revision of a resource, and for each object the revision of its last change."""
        revision: Revision = 0
        found: dict[Key, Revision] = {}
        for page in self._pages(served, namespace, _METADATA_ONLY):
            revision = int(page.metadata.resource_version)
            for item in page.items or ():
                metadata = _decode_metadata(item["metadata"])
                found[Key(metadata.namespace, metadata.name)] = int(metadata.resource_version)
        return revision, found

    def _pages(self, served: Served, namespace: str, accept: str) -> Iterator[_List]:
        token = ""
        while True:
            query = {"limit": str(_PAGE), **({"continue": token} if token else {})}
            page = self._decoded(self._get(served.url(namespace), query, {"accept": accept}))
            yield page
            token = page.metadata.continue_
            if not token:
                return

    def watch(self, served: Served, namespace: str, revision: Revision, seconds: int) -> Iterator[bytes]:
        """Yield the lines of a watch from `revision` on, until the server ends the watch, after at most `seconds`."""
        return self.lines(served, namespace, {"resourceVersion": str(revision)}, seconds)

    def lines(self, served: Served, namespace: str, query: Mapping[str, str], seconds: int) -> Iterator[bytes]:
        """Yield the lines of a watch, as `watch` does, but with additional `query` parameters."""
        parameters = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds), **query}
        timeout = urllib3.Timeout(connect=10, read=seconds + 30)
        response = self._send(served.url(namespace), parameters, {}, timeout)
        rest = b""
        try:
            # `stream` would wait for 64 KiB if the server, or an HTTP/1.0 proxy, does not send chunks.
            while piece := response.read1(1 << 16):
                *lines, rest = (rest + piece).split(b"\n")
                yield from lines
        except urllib3.exceptions.HTTPError as error:
            raise ServiceUnavailable(f"the watch of {served.resource} broke: {error}") from error
        finally:
            response.close()

    def request(self, method: str, path: str, query: Mapping[str, str], body: bytes | None = None) -> bytes:
        """Send a request to any URL path, with a `body` in JSON if it is given, and return the response body."""
        headers = {} if body is None else {"content-type": "application/json"}
        return self._read(path, self._send(path, query, headers, _TIMEOUT, method, body))

    def _json(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self._get(path, {}, {}))
        return found

    def _decoded(self, data: bytes) -> _List:
        try:
            return _decode_list(data)
        except msgspec.MsgspecError as error:
            raise ServiceUnavailable(f"{self.server} did not answer with a list: {error}") from error

    def _get(self, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
        return self._read(path, self._send(path, query, headers, _TIMEOUT))

    def _read(self, path: str, response: urllib3.BaseHTTPResponse) -> bytes:
        try:
            return bytes(response.data)
        except urllib3.exceptions.HTTPError as error:
            raise ServiceUnavailable(f"{self.server}{path} could not be read: {error}") from error

    def _send(
        self,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        timeout: urllib3.Timeout,
        method: str = "GET",
        body: bytes | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """Send a request; if the response is 401, refresh the credentials once and retry."""
        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        response = self._sent(method, url, headers, timeout, body)
        if response.status == 401:
            response.drain_conn()
            self._headers = {**self._headers, **self._access.headers()}
            response = self._sent(method, url, headers, timeout, body)
            if response.status == 401:
                response.drain_conn()
                raise self._unauthorized()
        if response.status >= 300:
            raise self._refusal(response.status, bytes(response.data), path)
        return response

    def _unauthorized(self) -> Unauthorized:
        named = f" of {self._access.origin}" if self._access.origin else ""
        return Unauthorized(
            f"Unauthorized: {self.server} does not accept the credentials{named}; "
            "--kubeconfig or --context names others"
        )

    def _refusal(self, code: int, body: bytes, what: str) -> ApiError:
        """Return the error for a response."""
        return refusal(code, body, what)

    def _sent(
        self, method: str, url: str, headers: Mapping[str, str], timeout: urllib3.Timeout, body: bytes | None
    ) -> urllib3.BaseHTTPResponse:
        try:
            return self._pool.request(
                method,
                url,
                headers={**self._headers, **headers},
                body=body,
                timeout=timeout,
                preload_content=False,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise ServiceUnavailable(f"{self.server} cannot be reached: {error}") from error


def refusal(code: int, body: bytes, what: str) -> ApiError:
    """Return the error for a response; `what` describes the request in the error's message."""
    try:
        message = _decode_status(body).message
    except msgspec.MsgspecError:
        message = body[:200].decode(errors="replace").strip()
    text = f"{what}: {message or code}"
    if code == 410:
        return Expired(0, 0, text)
    return _REFUSALS.get(code, ServiceUnavailable)(text)

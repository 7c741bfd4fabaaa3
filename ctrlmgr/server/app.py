"""The ASGI application: paths to answers, nothing else.

| path | answer |
|---|---|
| `/livez`, `/readyz`, `/healthz` | the checks, as kube-apiserver answers them (`?verbose`, `?exclude=NAME`) |
| `/readyz/NAME` | one check, with its reason |
| `/metrics` | Prometheus text, or OpenMetrics if asked for |
| `/version` | what runs here |
| `/` | the paths |

Unknown paths are 404, methods other than GET and HEAD are 405. Every answer is made without waiting for anybody.
"""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from ctrlmgr import __version__
from ctrlmgr.server.health import Health

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"


class Request(NamedTuple):
    """What an answer depends on; of a query only the last value of a name, except for `exclude`."""

    path: str
    query: dict[str, list[str]]
    accept: str


class Response(NamedTuple):
    """An answer."""

    status: int
    content_type: str
    body: bytes


class App:
    """Answers HTTP requests; made for one process, shared by all its connections."""

    def __init__(self, health: Sequence[Health], registry: CollectorRegistry) -> None:
        """Serve these health endpoints at their names, and the metrics of `registry`."""
        self._health = {endpoint.name: endpoint for endpoint in health}
        self._registry = registry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] != "http":
            raise ValueError(f"this server speaks HTTP only, not {scope['type']}")
        if scope["method"] not in ("GET", "HEAD"):
            await _send(send, Response(405, _TEXT, b"Method Not Allowed\n"), [(b"allow", b"GET, HEAD")])
            return
        headers = dict(scope["headers"])
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        request = Request(scope["path"], query, headers.get(b"accept", b"").decode("latin-1"))
        await _send(send, self.answer(request), body=scope["method"] == "GET")

    def answer(self, request: Request) -> Response:
        """Return the answer to a GET."""
        first, _, rest = request.path.removeprefix("/").removesuffix("/").partition("/")
        if first in self._health:
            return _healthy(self._health[first], rest, request.query)
        if rest:
            return _NOT_FOUND
        match first:
            case "":
                return Response(200, _JSON, msgspec.json.encode({"paths": self._paths()}))
            case "metrics":
                encode, content_type = choose_encoder(request.accept)
                return Response(200, content_type, encode(self._registry))
            case "version":
                return Response(200, _JSON, msgspec.json.encode(_version()))
        return _NOT_FOUND

    def _paths(self) -> list[str]:
        health = [f"/{name}" for name in self._health]
        checks = [f"/{name}/{check.name}" for name, endpoint in self._health.items() for check in endpoint.checks]
        return sorted([*health, *checks, "/metrics", "/version"])


_NOT_FOUND = Response(404, _TEXT, b"404 page not found\n")


def _healthy(health: Health, check: str, query: dict[str, list[str]]) -> Response:
    if check:
        found = health.report_one(check)
        if found is None:
            return _NOT_FOUND
    else:
        found = health.report(verbose="verbose" in query, exclude=query.get("exclude", []))
    ok, text = found
    return Response(200 if ok else 500, _TEXT, text.encode())


def _version() -> dict[str, str]:
    major, minor, _ = __version__.split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{__version__}",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


async def _send(
    send: Send, response: Response, headers: Sequence[tuple[bytes, bytes]] = (), *, body: bool = True
) -> None:
    every = [
        (b"content-type", response.content_type.encode()),
        (b"content-length", str(len(response.body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-cache, private"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": every})
    await send({"type": "http.response.body", "body": response.body if body else b""})

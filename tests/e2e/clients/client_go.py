"""Sends requests in the form of client-go's typed clients: protobuf bodies, and an Accept header that prefers protobuf.

Every thread needs its own client, because a client has a single HTTP/1.1 connection.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import yaml

from tests.e2e.serving import DEADLINE, Server
from tests.schema.protobuf_encoder import body as protobuf

PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON = "application/json"
TYPED = f"{PROTOBUF},{JSON}"
"""The Accept header of client-go's typed clients."""

TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io,{JSON};as=Table;v=v1beta1;g=meta.k8s.io,{JSON}"
"""The Accept header of kubectl when it prints objects."""

GOING_AWAY = (429, 503)
"""The status codes of responses after which a client retries its request later."""

Unstructured = dict[str, Any]


def metadata(suffix: str) -> str:
    """Return the Accept header of client-go's metadata client; `suffix` is `List` for lists."""
    media_types = (f"{encoding};as=PartialObjectMetadata{suffix};g=meta.k8s.io;v=v1" for encoding in (PROTOBUF, JSON))
    return ",".join(media_types)


class ConnectionBroken(Exception):
    """Raised if the connection was refused or broke, or if the server announced that it is shutting down."""


class Response(NamedTuple):
    """The status code and the decoded body of a response."""

    code: int
    body: Any


class ClientGo:
    """One connection to a server that may be restarted; requests raise `ConnectionBroken` if the connection is lost."""

    def __init__(self, server: Server, user_agent: str = "kube-controller-manager/v1.36.2 (linux/amd64)") -> None:
        """Read the server's address, its certificate authority and a token from the server's kubeconfig."""
        config = yaml.safe_load(server.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._connection = http.client.HTTPSConnection(
            urlsplit(cluster["server"]).netloc,
            timeout=DEADLINE,
            context=ssl.create_default_context(cadata=authority),
        )
        self._headers = {
            "Authorization": f"Bearer {config['users'][0]['user']['token']}",
            "Accept-Encoding": "gzip",
            "User-Agent": user_agent,
        }

    def __enter__(self) -> ClientGo:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = TYPED) -> Response:
        """Send a GET for an object or a list."""
        return self._answer("GET", path, query, accept)

    def write(self, method: str, path: str, obj: Unstructured, query: Mapping[str, str] | None = None) -> Response:
        """Send a POST, PUT or DELETE with a protobuf body."""
        return self._answer(method, path, query, TYPED, protobuf(obj), PROTOBUF)

    def patch(self, path: str, patch: object, kind: str = "strategic-merge") -> Response:
        """Send a PATCH; the body of a patch is always JSON."""
        return self._answer("PATCH", path, None, TYPED, json.dumps(patch).encode(), f"application/{kind}-patch+json")

    @contextmanager
    def watch(self, path: str, query: Mapping[str, str], accept: str = TYPED) -> Iterator[Iterator[Unstructured]]:
        """Open a watch and yield its events until the stream ends; a stream may also end in the middle of a line."""
        response = self._send("GET", path, {"watch": "true", **query}, accept, None, "")
        try:
            if response.status != 200:
                raise AssertionError(f"{path} {query}: {response.status} {response.read()!r}")
            yield _events(response)
        finally:
            response.close()
            self._connection.close()

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        accept: str,
        body: bytes | None = None,
        media_type: str = "",
    ) -> Response:
        response = self._send(method, path, query or {}, accept, body, media_type)
        try:
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise ConnectionBroken from error
        if response.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        return Response(response.status, json.loads(data))

    def _send(
        self, method: str, path: str, query: Mapping[str, str], accept: str, body: bytes | None, media_type: str
    ) -> http.client.HTTPResponse:
        headers = {**self._headers, "Accept": accept}
        if media_type:
            headers["Content-Type"] = media_type
        try:
            self._connection.request(method, f"{path}?{urlencode(query)}" if query else path, body, headers)
            response = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise ConnectionBroken from error
        if response.status in GOING_AWAY:
            self._connection.close()
            raise ConnectionBroken
        return response


def _events(response: http.client.HTTPResponse) -> Iterator[Unstructured]:
    while True:
        try:
            line = response.readline()
        except (OSError, http.client.HTTPException):
            return
        if not line.endswith(b"\n"):
            return
        yield json.loads(line)

"""The HTTP proxy through which the operator reaches the server.

Guarantees:
- The server sees all requests of the operator as those of the operator's user.
- Each request, and the whole answer of each request except watches, passes through one function, which may change both.
- After `cut`, no request that was received before reaches the server, as if its client had died.
- Upgraded connections (exec, attach, port-forward) are refused with 501.
"""

from __future__ import annotations

import http.client
import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from ctrlmgr import threads
from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import Clock
from ctrlmgr.trial.proxy.operator_request import Answer, ConnectionDropped, Request, read_request, refusal
from ctrlmgr.trial.proxy.watch_streams import WatchStream, WatchStreams

Forward = Callable[[Request], Answer]
"""Sends a request to the server, and returns the server's answer."""


class Exchange(Protocol):
    """Decides what happens to the operator's requests."""

    def answer(self, request: Request, forward: Forward) -> Answer:
        """Return the answer to a request; raises `ConnectionDropped` to close the connection instead."""

    def watched(self, request: Request) -> Request | Answer:
        """Return the watch that is sent to the server, or an answer that replaces the watch."""


_OWN = frozenset(
    {
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "host",
        "impersonate-group",
        "impersonate-user",
        "keep-alive",
        "transfer-encoding",
    }
)
"""The headers that the proxy replaces or removes."""
_JSON = "application/json"
_TIMEOUT = 600.0


class Upstream(NamedTuple):
    """The server behind the proxy; `headers` authenticate the operator's user."""

    url: str
    trust: ssl.SSLContext | None
    headers: Mapping[str, str]


class Traffic:
    """The number of requests, and the time since the last one; watches do not count while they are open."""

    def __init__(self, clock: Clock) -> None:
        """Create the traffic of a proxy without requests."""
        self._clock = clock
        self._lock = threading.Lock()
        self._running = 0
        self._ended_at = clock.monotonic()
        self.of_resources = 0
        """The number of requests for resources since the operator started."""

    @contextmanager
    def counted(self, request: Request) -> Iterator[None]:
        """Count a request that runs until the end of the context."""
        with self._lock:
            self._running += 1
            self.of_resources += request.resource is not None
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self._ended_at = self._clock.monotonic()

    def restarted(self) -> None:
        """Count the requests of an operator that starts now."""
        with self._lock:
            self.of_resources = 0
            self._ended_at = self._clock.monotonic()

    def idle_seconds(self) -> float:
        """Return the seconds since the last request ended; 0 while a request is running."""
        with self._lock:
            return 0.0 if self._running else self._clock.monotonic() - self._ended_at


class OperatorProxy:
    """A context manager that serves the proxy on a free port of 127.0.0.1."""

    def __init__(self, upstream: Upstream, exchange: Exchange, watches: WatchStreams, *, clock: Clock) -> None:
        """Create a proxy for the server at `upstream`; `exchange` answers each request except watches."""
        self.upstream = upstream
        self.exchange = exchange
        self.watches = watches
        self.traffic = Traffic(clock)
        self.epoch = 0
        """The number of cuts so far."""
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self

    @property
    def url(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> OperatorProxy:
        threads.start("trial-proxy", lambda: self._server.serve_forever(poll_interval=0.05))
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._server.shutdown()
        self._server.server_close()

    def cut(self) -> None:
        """Close all connections of the operator, and end its watches."""
        with self._lock:
            self.epoch += 1
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.watches.end()
        self.traffic.restarted()

    def connected(self, connection: socket.socket) -> int:
        """Add a connection of the operator, and return the current epoch."""
        with self._lock:
            self._connections.add(connection)
            return self.epoch

    def disconnected(self, connection: socket.socket) -> None:
        """Remove a connection of the operator."""
        with self._lock:
            self._connections.discard(connection)

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection to the server, which is opened with its first request."""
        parts = urlsplit(self.upstream.url)
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.netloc, timeout=_TIMEOUT)
        return http.client.HTTPSConnection(parts.netloc, context=self.upstream.trust, timeout=_TIMEOUT)


class _Server(socketserver.TCPServer):
    allow_reuse_address = True
    request_queue_size = 128
    proxy: OperatorProxy

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection on its own thread."""
        threads.start("trial-connection", lambda: self._serve(request, client_address))

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        try:
            with suppress(ConnectionDropped, OSError):  # the operator has closed the connection, or was killed
                self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)


class _Handler(BaseHTTPRequestHandler):
    """Serves one connection of the operator, with one connection to the server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        """Prepare the connection."""
        super().setup()
        self._proxy = self.server.proxy
        self._epoch = self._proxy.connected(self.connection)
        self._upstream = self._proxy.connect()

    def finish(self) -> None:
        """End the connection."""
        self._proxy.disconnected(self.connection)
        self._upstream.close()
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def version_string(self) -> str:
        """Return the name of the proxy."""
        return "ctrlmgr-trial"

    def serve_request(self) -> None:
        """Answer the request whose head was read; the base class calls this for each method."""
        request = read_request(self.command, self.path, dict(self.headers.items()), self._read_body())
        if "upgrade" in self.headers.get("connection", "").lower():
            self._write(refusal(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", "the trial does not proxy upgrades"))
            return
        if request.verb == "watch":
            self._watch(request)
            return
        with self._proxy.traffic.counted(request):
            answer = self._proxy.exchange.answer(request, self._forward)
        self._write(answer)

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _write(self, answer: Answer) -> None:
        self._require_epoch()
        self.send_response(answer.code)
        for name, value in answer.headers.items():
            if name.lower() not in _OWN:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _require_epoch(self) -> None:
        """Raise `ConnectionDropped` if the operator that sent this request was killed."""
        if self._proxy.epoch != self._epoch:
            self.close_connection = True
            raise ConnectionDropped

    def _forward(self, request: Request) -> Answer:
        response = self._send(request)
        return Answer(response.status, dict(response.getheaders()), response.read())

    def _send(self, request: Request, **headers: str) -> http.client.HTTPResponse:
        self._require_epoch()
        kept = {name: value for name, value in request.headers.items() if name.lower() not in _OWN}
        sent = {**kept, **self._proxy.upstream.headers, **headers}
        try:
            self._upstream.request(request.method, request.target, request.body or None, sent)
            return self._upstream.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # The server closes idle connections; it has not read the request then.
            self._upstream.close()
            self._upstream.request(request.method, request.target, request.body or None, sent)
            return self._upstream.getresponse()

    def _watch(self, request: Request) -> None:
        """Relay a watch until it ends; the connection serves further requests afterwards."""
        chosen = self._proxy.exchange.watched(request)
        if isinstance(chosen, Answer):
            self._write(chosen)
            return
        accepted = request.headers.get("Accept", _JSON)
        is_json = _JSON in accepted or "*/*" in accepted
        with self._proxy.traffic.counted(request):
            response = self._send(chosen, **({"Accept": _JSON} if is_json else {}))
        try:
            if response.status == HTTPStatus.OK and request.resource is not None:
                self._relay(request.resource, response, is_json=is_json)
            else:
                self._write(Answer(response.status, dict(response.getheaders()), response.read()))
        finally:
            self._upstream.close()

    def _relay(self, resource: Resource, response: http.client.HTTPResponse, *, is_json: bool) -> None:
        stream = WatchStream(resource, self._upstream.sock)
        self._proxy.watches.opened(stream)
        try:
            self._require_epoch()
            self.send_response(response.status)
            self.send_header("Content-Type", response.getheader("Content-Type", _JSON))
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._relay_events(stream, response, is_json=is_json)
            self._chunk(stream.last_words if is_json else b"")
            self.wfile.write(b"0\r\n\r\n")
        finally:
            self._proxy.watches.closed(stream)

    def _relay_events(self, stream: WatchStream, response: http.client.HTTPResponse, *, is_json: bool) -> None:
        rest = b""
        while not stream.is_ended:
            try:
                read = response.read1(1 << 16)
            except (OSError, ValueError, http.client.HTTPException):  # the trial has closed the socket
                return
            if not read:
                return
            whole, end, rest = (rest + read).rpartition(b"\n") if is_json else (read, b"", b"")
            self._chunk(self._proxy.watches.passed(stream, whole + end))

    def _chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


for _method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
    setattr(_Handler, f"do_{_method}", _Handler.serve_request)


def operator_kubeconfig(url: str, namespace: str = "default") -> str:
    """Return a kubeconfig with which the operator reaches the proxy, as JSON, which every YAML parser reads."""
    named = {"name": "trial"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{**named, "cluster": {"server": url}}],
            "users": [{**named, "user": {"token": "trial"}}],
            "contexts": [{**named, "context": {"cluster": "trial", "user": "trial", "namespace": namespace}}],
            "current-context": "trial",
        }
    )

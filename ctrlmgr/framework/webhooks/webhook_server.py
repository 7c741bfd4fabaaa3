"""Serves the admission functions of apps over HTTPS, each at its own path.

Guarantees: the constructor binds the address. Each connection has a thread, and at most `_CONNECTIONS` connections are
open at a time. A request has a maximum size, and a client that sends no data is disconnected. When the server stops,
running requests have `_FAREWELL` seconds to complete.

The server does not authenticate its callers, because a call changes nothing, and a response contains only information
that the caller has sent or that the cluster already has.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

import structlog

from ctrlmgr import threads
from ctrlmgr.clock import Clock
from ctrlmgr.errors import BadRequest, SettingsError
from ctrlmgr.framework.app_admission import AppAdmission
from ctrlmgr.framework.cached_objects import Cache
from ctrlmgr.framework.webhooks.admission_reviews import answer
from ctrlmgr.framework.webhooks.webhook_certificates import RENEW, WebhookCertificates

log = structlog.get_logger(__name__)

_CONNECTIONS: Final = 128
_LARGEST: Final = 16 * 1024 * 1024
"""The maximum size of a request in bytes: two objects of the maximum size that Kubernetes stores, and room for the
encoding.
"""
_SILENCE: Final = 90.0
"""Seconds after which a connection without data is closed; Go's client closes idle connections after the same time."""
_FAREWELL: Final = 5.0


class WebhookServer:
    """A runnable that serves admission functions."""

    name = "webhooks"

    def __init__(
        self,
        address: tuple[str, int],
        functions: Mapping[str, AppAdmission],
        cache: Cache,
        certificates: WebhookCertificates,
        *,
        clock: Clock,
    ) -> None:
        """Listen at `address`, and serve each of `functions` at its path.

        Raises `SettingsError` if the address is unavailable. The admission functions read other objects from `cache`.
        The certificates must exist when the server starts to run.
        """
        self._certificates = certificates
        self._clock = clock
        try:
            self._server = _Server(address, _handler(functions, cache), certificates, clock)
        except OSError as error:
            raise SettingsError(f"--webhook-listen {address[0]}:{address[1]}: {error.strerror}") from error

    @property
    def port(self) -> int:
        """Return the port on which the server listens."""
        return int(self._server.server_address[1])

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set; renew the serving certificate before it expires."""
        thread = threads.start(f"{self.name} listening", lambda: self._server.serve_forever(poll_interval=0.1))
        while not stop.wait(RENEW):
            self._certificates.ensure()
        self._server.shutdown()
        thread.join()
        self._server.server_close()
        self._server.finish(_FAREWELL)
        self._certificates.close()


class _Server(HTTPServer):
    """Accepts connections, and serves each connection on its own thread."""

    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BaseHTTPRequestHandler],
        certificates: WebhookCertificates,
        clock: Clock,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._certificates = certificates
        self._clock = clock
        self._open = 0
        self.answering = 0  # The requests that are being answered.
        self.changed = threading.Condition()  # Guards both counts.
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.changed:
            if self._open >= _CONNECTIONS:
                log.warning("webhook connection refused", limit=_CONNECTIONS)
                self.shutdown_request(request)
                return
            self._open += 1
        threads.start("webhook connection", lambda: self._connected(request, client_address))

    def _connected(self, request: socket.socket, client_address: Any) -> None:
        try:
            request.settimeout(_SILENCE)
            secured = self._certificates.context.wrap_socket(request, server_side=True)
            with secured:
                self.finish_request(secured, client_address)
        except OSError as error:  # The client has disconnected, or trusts another authority.
            log.debug("webhook connection ended", client=str(client_address[0]), error=str(error))
        finally:
            request.close()
            with self.changed:
                self._open -= 1

    def finish(self, patience: float) -> None:
        """Wait until all requests have been answered, but at most `patience` seconds."""
        until = self._clock.monotonic() + patience
        with self.changed:
            while self.answering and (left := until - self._clock.monotonic()) > 0:
                self._clock.wait(self.changed, left)


def _handler(functions: Mapping[str, AppAdmission], cache: Cache) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # The standard library calls the method by this name.
            server = self.server
            assert isinstance(server, _Server)
            with server.changed:
                server.answering += 1
            try:
                self._decide()
            finally:
                with server.changed:
                    server.answering -= 1
                    server.changed.notify_all()

        def _decide(self) -> None:
            declared = functions.get(self.path.partition("?")[0])
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > _LARGEST:
                self.close_connection = True  # The body of the request is not read.
                self._send(413 if length.isdecimal() else 411, b"an AdmissionReview needs a Content-Length\n")
                return
            body = self.rfile.read(int(length))
            if declared is None:
                self._send(404, b"there is no such admission function\n")
                return
            try:
                self._send(200, answer(declared, body, cache))
            except BadRequest as error:
                self._send(400, f"{error}\n".encode())

        def _send(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "application/json" if code == 200 else "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Do nothing: requests are not logged."""

    return Handler

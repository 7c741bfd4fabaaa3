"""Serves metrics and health of a process over HTTP or HTTPS.

Guarantees: `/metrics` has the same metrics as the controllers have inside the control plane; `/healthz` and `/livez`
return an error if leadership could not be renewed or released in time; `/readyz` returns an error until the caches have
synced. The pages are read-only and contain no secrets. With TLS, the API server authenticates and authorizes the
callers of pages other than those that any client may read, as kube-controller-manager does.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Collection, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from prometheus_client import generate_latest

from ctrlmgr import threads
from ctrlmgr.authentication.user import AUTHENTICATED, User
from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.remote.remote_access_reviews import ANONYMOUS, AccessReviews
from ctrlmgr.http.tls import ensure_certificates
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.settings.metric_filters import exposed

Problem = Callable[[], str | None]
"""A function that returns the problem, None if the process is healthy."""

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_PATHS: Final = ("/healthz", "/readyz", "/livez")
"""The paths that any client may read by default."""

_PATIENCE: Final = 5.0
"""Seconds for which the server waits for the next bytes of a client; the server serves one client at a time."""


class StatusTls(NamedTuple):
    """The files for serving with TLS; empty paths for a certificate that the process issues itself."""

    certificate: str
    key: str
    client_ca: str
    """The authority of client certificates (PEM file); empty if client certificates are ignored."""

    def context(self, host: str, clock: Clock) -> ssl.SSLContext:
        """Return the TLS context of a server at `host`; raises `SettingsError` if a file cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key)
            else:
                _load_own(context, host, clock)
            if self.client_ca:
                context.load_verify_locations(self.client_ca)
                context.verify_mode = ssl.CERT_OPTIONAL
        except (OSError, ValueError) as error:
            names = ", ".join(filter(None, self))
            raise SettingsError(f"the certificates of the status pages ({names}) cannot be used: {error}") from error
        return context


def _load_own(context: ssl.SSLContext, host: str, clock: Clock) -> None:
    """Load a new certificate, which no file keeps, into `context`."""
    with TemporaryDirectory() as folder:
        files = ensure_certificates(Path(folder), [host, "localhost"], clock=clock)
        context.load_cert_chain(files.serving, files.serving_key)


class _Server6(HTTPServer):
    address_family = socket.AF_INET6


class StatusPages:
    """A runnable that serves the status pages on one address."""

    name = "status pages"

    def __init__(
        self,
        address: tuple[str, int],
        *,
        alive: Problem,
        ready: Problem,
        tls: ssl.SSLContext | None = None,
        reviews: AccessReviews | None = None,
        open_paths: Collection[str] = OPEN_PATHS,
    ) -> None:
        """Bind the address immediately; raises `SettingsError` if the address is unavailable.

        With `tls`, `reviews` authorizes the users that read other paths than `open_paths`.
        """
        checks: dict[str, Problem] = {"/healthz": alive, "/livez": alive, "/readyz": ready}

        class Handler(BaseHTTPRequestHandler):
            timeout = _PATIENCE

            def do_GET(self) -> None:  # The standard library calls the method by this name.
                path = self.path.partition("?")[0]
                checked = tls is not None and not _is_open(path, open_paths)
                if checked and reviews is not None and (code := _refusal(self, reviews, path)):
                    self._answer(code, b"Unauthorized\n" if code == 401 else b"Forbidden\n")
                elif path in checks:
                    problem = checks[path]()
                    self._answer(200 if problem is None else 503, (problem or "ok").encode())
                elif path == "/metrics":
                    self._answer(200, generate_latest(exposed(REGISTRY)))
                else:
                    self._answer(404, b"there are /metrics, /healthz, /livez and /readyz\n")

            def _answer(self, code: int, body: bytes) -> None:
                self.send_response(code)
                self.send_header("Content-Type", _TEXT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """Do nothing: requests are not logged."""

        try:
            self._server = (_Server6 if ":" in address[0] else HTTPServer)(address, Handler)
        except OSError as error:
            raise SettingsError(f"--status-address {address[0]}:{address[1]}: {error.strerror}") from error
        if tls is not None:
            # The handshake waits until the first read, so that a silent client cannot block `accept`.
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def port(self) -> int:
        """Return the port on which the server listens."""
        return int(self._server.server_address[1])

    def run(self, stop: threading.Event) -> None:
        """Serve the status pages until `stop` is set."""
        thread = threads.start(f"{self.name} answering", lambda: self._server.serve_forever(poll_interval=0.2))
        stop.wait()
        self._server.shutdown()
        thread.join()
        self._server.server_close()


def _is_open(path: str, open_paths: Collection[str]) -> bool:
    """Return whether any client may read a path: one of `open_paths`, or one with a prefix that ends with `*`."""
    return any(path.startswith(each[:-1]) if each.endswith("*") else path == each for each in open_paths)


def _refusal(request: BaseHTTPRequestHandler, reviews: AccessReviews, path: str) -> int:
    """Return the status code with which a request is refused; 0 if its user may read `path`."""
    user = _user(request, reviews)
    if user is None:
        return 401
    return 0 if reviews.allows(user, {"nonResourceAttributes": {"path": path, "verb": "get"}}) else 403


def _user(request: BaseHTTPRequestHandler, reviews: AccessReviews) -> User | None:
    """Return the user of a request by its client certificate or token; None if the token is not valid."""
    connection = request.connection
    if isinstance(connection, ssl.SSLSocket) and (certificate := connection.getpeercert()):
        return _subject(certificate)
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return reviews.user_of(token.strip()) if scheme.lower() == "bearer" else ANONYMOUS


def _subject(certificate: Mapping[str, Any]) -> User:
    """Return the user in a client certificate: its common name, with the organizations as groups."""
    names = [pair for part in certificate.get("subject", ()) for pair in part]
    groups = [value for name, value in names if name == "organizationName"]
    common = [value for name, value in names if name == "commonName"]
    return User(common[-1] if common else "", "", (*groups, AUTHENTICATED))

"""Serves metrics and health of a process over HTTP.

Guarantees: `/metrics` has the same metrics as the controllers have inside the control plane; `/healthz` and `/livez`
return an error if leadership could not be renewed or released in time; `/readyz` returns an error until the caches have
synced. The pages are read-only and contain no secrets. The pages are served over plain HTTP, without TLS, on the given
address.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Final

from prometheus_client import generate_latest

from ctrlmgr import threads
from ctrlmgr.errors import SettingsError
from ctrlmgr.metrics import REGISTRY

Problem = Callable[[], str | None]
"""A function that returns the problem, None if the process is healthy."""

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


class _Server6(HTTPServer):
    address_family = socket.AF_INET6


class StatusPages:
    """A runnable that serves the status pages on one address."""

    name = "status pages"

    def __init__(self, address: tuple[str, int], *, alive: Problem, ready: Problem) -> None:
        """Bind the address immediately; raises `SettingsError` if the address is unavailable."""
        checks: dict[str, Problem] = {"/healthz": alive, "/livez": alive, "/readyz": ready}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # The standard library calls the method by this name.
                path = self.path.partition("?")[0]
                if path == "/metrics":
                    self._answer(200, generate_latest(REGISTRY))
                elif path in checks:
                    problem = checks[path]()
                    self._answer(200 if problem is None else 503, (problem or "ok").encode())
                else:
                    self._answer(404, b"there are /metrics, /healthz, /livez and /readyz\n")

            def _answer(self, code: int, body: bytes) -> None:
                self.send_response(code)
                self.send_header("Content-Type", _TEXT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """Do not log requests."""

        try:
            self._server = (_Server6 if ":" in address[0] else HTTPServer)(address, Handler)
        except OSError as error:
            raise SettingsError(f"--status-address {address[0]}:{address[1]}: {error.strerror}") from error

    @property
    def port(self) -> int:
        """Return the port on which the server listens."""
        return int(self._server.server_address[1])

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop`."""
        thread = threads.start(f"{self.name} answering", lambda: self._server.serve_forever(poll_interval=0.2))
        stop.wait()
        self._server.shutdown()
        thread.join()
        self._server.server_close()

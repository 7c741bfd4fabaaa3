"""Responses of small HTTP servers in tests: one JSON document per request, and no log output."""

from __future__ import annotations

import http.server
import json
from typing import Any


class JsonHandler(http.server.BaseHTTPRequestHandler):
    """The base class of request handlers that respond to GET and POST in the same way."""

    def do_GET(self) -> None:
        """Answer."""
        self.respond()

    def do_POST(self) -> None:
        """Answer."""
        self.respond()

    def respond(self) -> None:
        """Send one `answer`."""
        raise NotImplementedError

    def answer(self, document: Any, code: int = 200) -> None:
        """Send a whole response."""
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""

"""Sends requests one after the other with `http.client`, on a connection that is reused until it fails."""

from __future__ import annotations

import http.client
from collections.abc import Mapping

from tests.robustness.hostile.raw import PATIENCE
from tests.robustness.serving import ConfiguredServer


class RequestAndResponse:
    """The bytes of a request of the client `program`, and the response to this request."""

    def __init__(self, server: ConfiguredServer, program: str) -> None:
        self._server = server
        self._program = program
        self._connection: http.client.HTTPSConnection | None = None

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return the status code and the body of the response; raise OSError or HTTPException if the connection fails,
        and reconnect for the next request.

        A header whose value is None is left out.
        """
        site = self._server.site
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(site.host, site.port, timeout=PATIENCE, context=site.trust)
        said = {"authorization": f"Bearer {site.token}", "user-agent": self._program, **headers}
        try:
            self._connection.request(method, path, body or None, {name: each for name, each in said.items() if each})
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            self._connection = None
            raise
        if response.will_close:
            self.close()
        return response.status, answer

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

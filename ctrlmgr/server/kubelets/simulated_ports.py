"""Forwards ports of simulated pods; each declared port responds to HTTP requests with the pod's host name.

Guarantees: a port that no container declares is refused, as the kubelet refuses a port on which nothing listens.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.http.spdy.spdy_connection import SpdyConnection, SpdyStream
from ctrlmgr.http.tunnel import Receiver, Side
from ctrlmgr.server.connect_subresources import Executions

_END: Final = b"\r\n\r\n"
_LONGEST: Final = 64 * 1024
"""Maximum size of a request's head in bytes."""


def answer_of(pod: Object) -> bytes:
    """Return the body with which a port of a simulated pod responds: the pod's host name."""
    return f"{pod.name}\n".encode()


class SimulatedPorts:
    """The forwarded connections of one client. Used on the event loop's thread only."""

    def __init__(self, side: Side, pod: Object, executions: Executions) -> None:
        """Create the connections on `side` for the ports of `pod`."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """A future that ends when the connection is closed."""
        self._pod = pod
        self._executions = executions
        self._errors: dict[str, SpdyStream] = {}
        self._connection = SpdyConnection(side, is_client=False, on_stream=self._accept, on_end=self._ended)
        self._connection.open()

    def abort(self) -> None:
        """Close the connection at once."""
        self._connection.abort()

    def _accept(self, stream: SpdyStream) -> bool:
        """Pair the error stream and the data stream of a forwarded connection.

        Both streams have the same `requestid`.
        """
        kind, port = stream.headers.get("streamtype", ""), stream.headers.get("port", "")
        if kind not in ("error", "data") or not port.isdecimal():
            return False
        request = stream.headers.get("requestid", "")
        if kind == "error":
            self._errors[request] = stream
            return True
        errors = self._errors.pop(request, None)
        if errors is None:
            return False
        self._begin(stream, errors, int(port))
        return True

    def _begin(self, stream: SpdyStream, errors: SpdyStream, port: int) -> None:
        if not self._executions.listens(self._pod, port):
            message = (
                f"error forwarding port {port} to pod {self._pod.name}, uid {self._pod.uid}: the node is simulated, "
            )
            errors.write(f"{message}and no container declares the port: connection refused".encode())
            errors.finish()
            stream.abort()
            return
        errors.finish()
        stream.attach(_Answering(stream, answer_of(self._pod)))

    def _ended(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


class _Answering(Receiver):
    """Responds to the HTTP requests of one forwarded connection."""

    def __init__(self, stream: SpdyStream, body: bytes) -> None:
        self._stream = stream
        self._body = body
        self._held = b""

    def receive(self, data: bytes) -> None:
        self._held += data
        while _END in self._held:
            _, _, self._held = self._held.partition(_END)
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(self._body)
            self._stream.write(head + self._body)
        if len(self._held) > _LONGEST:
            self._stream.abort()

    def resume(self) -> None:
        """Do nothing, because responses are so short that no output has to wait for the client."""

    def end(self) -> None:
        self._stream.finish()

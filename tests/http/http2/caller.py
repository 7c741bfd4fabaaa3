"""An HTTP/2 connection to a real server, on which a test can send frames in any order with hyper-h2."""

from __future__ import annotations

import socket
import ssl

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, StreamEnded

TIMEOUT = 20.0


class Caller:
    """An HTTP/2 connection on which a test can send frames in any order."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext, *headers: tuple[str, str]) -> None:
        raw = socket.create_connection(address, timeout=TIMEOUT)
        context.set_alpn_protocols(["h2"])
        self._socket = context.wrap_socket(raw, server_hostname=address[0])
        self._headers = headers
        assert self._socket.selected_alpn_protocol() == "h2"
        self.h2 = H2Connection(H2Configuration(client_side=True))
        self.h2.initiate_connection()
        self.bodies: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.events: list[Event] = []
        self.unread: set[int] = set()
        """Streams for which the client sends no window updates, so that the server stops sending data."""

    def ask(self, path: str, *more: tuple[str, str], method: str = "POST") -> int:
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
        self.h2.send_headers(stream, [*head, *self._headers, *more])
        return stream

    def send(self) -> None:
        self._socket.sendall(self.h2.data_to_send())

    def receive(self) -> None:
        """Receive bytes from the server, and return the next events."""
        self.send()
        for event in self.h2.receive_data(self._socket.recv(1 << 16)):
            self.events.append(event)
            if isinstance(event, DataReceived):
                self.bodies[event.stream_id] = self.bodies.get(event.stream_id, b"") + event.data
                self._read(event)
            elif isinstance(event, StreamEnded):
                self.ended.add(event.stream_id)

    def _read(self, event: DataReceived) -> None:
        if event.stream_id in self.unread:
            self.h2.increment_flow_control_window(event.flow_controlled_length)
        else:
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    def upload(self, stream: int, body: bytes) -> None:
        """Send a body as far as flow control allows, and wait for window updates before sending the rest."""
        while body:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(body))
            if room:
                self.h2.send_data(stream, body[:room])
                body = body[room:]
            else:
                self.receive()
        self.send()

    def answer(self, stream: int) -> bytes:
        while stream not in self.ended:
            self.receive()
        return self.bodies[stream]

    def close(self) -> None:
        self._socket.close()

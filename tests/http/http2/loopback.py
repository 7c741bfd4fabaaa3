"""An HTTP/2 connection between the server and a hyper-h2 client, without a socket."""

from __future__ import annotations

from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.settings import SettingCodes
from hyperframe.frame import Frame

from ctrlmgr.http.http2.frames import Code
from ctrlmgr.http.http2.http2_connection import Http2Connection
from ctrlmgr.http.response_stream import Stream
from ctrlmgr.http.size_limits import DEFAULT, Bounds
from tests.http.loopback import Client


def asking(path: str, *more: tuple[str, str], method: str = "GET") -> list[tuple[str, str]]:
    """Return the header fields of a request."""
    return [(":method", method), (":scheme", "https"), (":authority", "x"), (":path", path), *more]


class Http2Client(Client):
    """The client side of a connection, which stores responses by stream."""

    def __init__(self, bounds: Bounds = DEFAULT, *, window: int | None = None, **given: Any) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.events: list[Event] = []
        self.heads: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.resets: dict[int, Code] = {}
        self.goodbye: ConnectionTerminated | None = None
        self.reads = True
        super().__init__(bounds, protocol=Http2Connection, **given)
        self.h2.initiate_connection()
        if window is not None:
            self.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.exchange()

    def exchange(self) -> None:
        """Exchange bytes until neither side has anything to send."""
        while out := self.h2.data_to_send():
            self.connection.receive(out)
            self.loop.run()
            self.take()

    def take(self) -> None:
        """Process the bytes that the client has received."""
        data, self.transport.written = self.transport.written, b""
        for event in self.h2.receive_data(data):
            self._note(event)

    def _note(self, event: Event) -> None:
        self.events.append(event)
        match event:
            case ResponseReceived():
                self.heads[event.stream_id] = dict(event.headers)  # type: ignore[arg-type]  # decoded, as configured
            case DataReceived():
                self.bodies[event.stream_id] = self.bodies.get(event.stream_id, b"") + event.data
                if self.reads:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case StreamEnded():
                self.ended.add(event.stream_id)
            case StreamReset():
                self.resets[event.stream_id] = Code(event.error_code)
            case ConnectionTerminated():
                self.goodbye = event
            case TrailersReceived():
                raise AssertionError("no answer has trailers")

    def ask(self, *fields: tuple[str, str], ends: bool = True) -> int:
        """Send the header block of a request, and return the request's stream."""
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, list(fields), end_stream=ends)
        return stream

    def get(self, path: str, *more: tuple[str, str]) -> int:
        """Send a request without a body, with END_STREAM in its HEADERS frame."""
        stream = self.ask(*asking(path, *more))
        self.exchange()
        return stream

    def untold(self) -> list[Frame]:
        """Return the received frames that hyper-h2 has not processed, because hyper-h2 processes no frames after a
        GOAWAY.
        """
        data, self.transport.written = memoryview(self.transport.written), b""
        found = []
        while data:
            frame, size = Frame.parse_frame_header(data[:9])
            frame.parse_body(data[9 : 9 + size])
            found.append(frame)
            data = data[9 + size :]
        return found

    def say(self, data: bytes) -> None:
        """Send bytes that hyper-h2 would not create."""
        self.connection.receive(data)
        self.loop.run()
        self.take()

    def status(self, stream: int) -> str:
        return self.heads[stream][":status"]


def code_of(client: Http2Client) -> Code | None:
    """Return the error code with which the connection ended."""
    return None if client.goodbye is None else Code(client.goodbye.error_code or 0)


def begun(client: Http2Client) -> Stream:
    """Send a request, let the application begin its response, and return the request's stream."""
    assert client.get("/slow") == 1
    client.loop.go_on()
    stream = client.exchanges[0].stream
    assert stream is not None
    return stream

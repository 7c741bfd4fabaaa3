"""Tests of the server side of WebSockets; the client's frames are created by wsproto."""

from __future__ import annotations

import pytest
from wsproto.frame_protocol import FrameProtocol, Opcode

from ctrlmgr.http.websocket import WebSocket, WebSocketSide, accepting, offered_protocols
from tests.http.pipes import Pipe, StoringReceiver, pipe


class Client:
    """A WebSocket client on one side of a pipe, and the messages that the client has received."""

    def __init__(self, side: Pipe) -> None:
        self.side = side
        self.frames = FrameProtocol(client=True, extensions=[])
        self.received: list[tuple[Opcode, object]] = []
        side.attach(self)

    def send(self, data: bytes, *, fin: bool = True) -> None:
        self.side.write(bytes(self.frames.send_data(data, fin=fin)))

    def receive(self, data: bytes) -> None:
        self.frames.receive_bytes(data)
        for frame in self.frames.received_frames():
            self.received.append((frame.opcode, frame.payload))

    def resume(self) -> None:
        pass

    def end(self) -> None:
        pass


@pytest.fixture
def both() -> tuple[WebSocket, Client, StoringReceiver]:
    ours, theirs = pipe()
    server, kept = WebSocket(ours), StoringReceiver()
    server.open(kept)
    return server, Client(theirs), kept


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 1_000_000])
def test_messages_of_any_size_pass_in_both_directions(
    both: tuple[WebSocket, Client, StoringReceiver], size: int
) -> None:
    server, client, kept = both
    message = bytes(each % 251 for each in range(size))
    client.send(message)
    server.send(message)
    assert kept.messages == [message]
    assert client.received == [(Opcode.BINARY, message)]


def test_a_fragmented_message_is_one_message(both: tuple[WebSocket, Client, StoringReceiver]) -> None:
    _, client, kept = both
    client.send(b"one ", fin=False)
    client.side.write(bytes(client.frames.ping(b"?")))
    client.send(b"message")
    assert kept.messages == [b"one message"]
    assert client.received == [(Opcode.PONG, b"?")]


def test_bytes_can_arrive_one_by_one() -> None:
    ours, theirs = pipe()
    server, kept = WebSocket(ours), StoringReceiver()
    server.open(kept)
    for each in FrameProtocol(client=True, extensions=[]).send_data(b"hello", fin=True):
        theirs.write(bytes((each,)))
    assert kept.messages == [b"hello"]


@pytest.mark.parametrize(
    ("sent", "code"),
    [(b"\x82\x05hello", 1002), (b"\xc2\x85abcdhello", 1002), (b"\x82\xff\0\0\0\0\xff\0\0\0abcd", 1009)],
)
def test_invalid_frames_close_the_connection(
    both: tuple[WebSocket, Client, StoringReceiver], sent: bytes, code: int
) -> None:
    _, client, kept = both
    client.side.write(sent)
    assert client.received == [(Opcode.CLOSE, (code, ""))]
    assert (kept.messages, kept.is_over) == ([], True)


def test_a_close_is_answered(both: tuple[WebSocket, Client, StoringReceiver]) -> None:
    _, client, kept = both
    client.side.write(bytes(client.frames.close(1000)))
    assert client.received == [(Opcode.CLOSE, (1000, ""))]
    assert kept.is_over


def test_a_tunnel_is_carried_by_messages() -> None:
    ours, theirs = pipe()
    side, kept = WebSocketSide(ours), StoringReceiver()
    side.attach(kept)
    client = Client(theirs)
    client.send(b"a")
    client.send(b"b")
    side.write(b"c")
    side.finish()
    assert (kept.data, kept.is_over) == (b"ab", True)
    assert client.received == [(Opcode.BINARY, b"c"), (Opcode.CLOSE, (1000, ""))]


def test_the_handshake_equals_the_rfcs() -> None:
    headers = dict(accepting(b"dGhlIHNhbXBsZSBub25jZQ==", "chat"))
    assert headers[b"Sec-WebSocket-Accept"] == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455, section 1.3
    assert headers[b"Sec-WebSocket-Protocol"] == b"chat"
    assert offered_protocols([(b"sec-websocket-protocol", b"a, b"), (b"sec-websocket-protocol", b"c")]) == [*"abc"]

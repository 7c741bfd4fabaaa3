"""The channels of remote commands over WebSocket, as a kubelet serves them; the frames are those of wsproto."""

from __future__ import annotations

import asyncio
import base64
import hashlib

from wsproto.frame_protocol import CloseReason, FrameProtocol, Opcode

from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.spdy.spdy_connection import SpdyConnection, SpdyStream
from ctrlmgr.http.tunnel import Side
from ctrlmgr.server.kubelets.channels import SpdyChannels

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CLOSE = 255
"""The channel of the protocol version v5 on which a client reports that another channel has ended."""


class WebSocketChannels:
    """The channels of one command; the kubelet reads channel 0 and writes the others."""

    def __init__(self, side: Side, protocol: str) -> None:
        self.protocol = protocol
        self.sizes: list[bytes] = []
        """The terminal sizes that the client has sent."""
        self._side = side
        self._frames = FrameProtocol(client=False, extensions=[])
        self._input: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = asyncio.Event()
        self._room.set()
        self._message = b""

    @classmethod
    def accept(cls, exchange: Exchange) -> WebSocketChannels | None:
        """Switch the connection to WebSocket if the client requests one of the supported protocols."""
        protocol = _chosen(exchange)
        if protocol is None or exchange.switching is None:
            return None
        side = _switched(exchange, protocol)
        channels = cls(side, protocol)
        side.attach(channels)
        return channels

    async def read(self) -> bytes:
        """Return the next input of the command; it is empty at the end of the input."""
        data = await self._input.get()
        if self._input.qsize() < 8:
            self._side.resume_reading()
        return data

    def stop_reading(self) -> None:
        """End the input of the command, because the command has ended."""
        self._input.put_nowait(b"")

    def send(self, channel: int, data: bytes) -> None:
        """Write bytes to a channel."""
        self._side.write(bytes(self._frames.send_data(bytes([channel]) + data, fin=True)))
        if self._side.is_paused:
            self._room.clear()

    async def drain(self) -> None:
        """Wait until the client has read so much that more can be written."""
        await self._room.wait()

    def finish(self) -> None:
        """Close the connection after everything was sent."""
        self._side.write(bytes(self._frames.close(CloseReason.NORMAL_CLOSURE)))
        self._side.finish()

    def receive(self, data: bytes) -> None:
        """Process the frames that the client has sent."""
        self._frames.receive_bytes(data)
        for frame in self._frames.received_frames():
            payload = frame.payload.encode() if isinstance(frame.payload, str) else frame.payload
            if not isinstance(payload, bytes | bytearray):
                continue
            if frame.opcode is Opcode.PING:
                self._side.write(bytes(self._frames.pong(payload)))
            elif frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONTINUATION):
                self._message += payload
                if frame.message_finished:
                    self._take(self._message[0], self._message[1:])
                    self._message = b""

    def _take(self, channel: int, data: bytes) -> None:
        if channel == _CLOSE:
            self._input.put_nowait(b"")
        elif channel == 4:
            self.sizes.append(data)
        elif data:
            self._input.put_nowait(data)
            if self._input.qsize() >= 8:
                self._side.pause_reading()

    def resume(self) -> None:
        """Record that the client reads data again."""
        self._room.set()

    def end(self) -> None:
        """Record that the client has disconnected."""
        self._room.set()
        self._input.put_nowait(b"")


def _chosen(exchange: Exchange) -> str | None:
    asked = [each.strip() for each in dict(exchange.headers).get(b"sec-websocket-protocol", b"").decode().split(",")]
    return next((each for each in asked if each in PROTOCOLS), None)


def _switched(exchange: Exchange, protocol: str) -> Side:
    proof = base64.b64encode(hashlib.sha1(dict(exchange.headers)[b"sec-websocket-key"] + _GUID).digest())
    return exchange.switch(
        [
            (b"Upgrade", b"websocket"),
            (b"Connection", b"Upgrade"),
            (b"Sec-WebSocket-Accept", proof),
            (b"Sec-WebSocket-Protocol", protocol.encode()),
        ]
    )


class WebSocketPorts:
    """The forwarded ports of one WebSocket: channel 2N carries the bytes of the port N, channel 2N + 1 its error.

    The first message on each channel is the port's number (`pkg/kubelet` `cri/streaming/portforward/websocket.go`).
    """

    def __init__(self, side: Side, ports: list[int]) -> None:
        self._side = side
        self._frames = FrameProtocol(client=False, extensions=[])
        self._message = b""
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._early: dict[int, bytes] = {}
        for number, port in enumerate(ports):
            for channel in (2 * number, 2 * number + 1):
                self._send(channel, port.to_bytes(2, "little"))
        self._tasks = [asyncio.ensure_future(self._forward(2 * n, port)) for n, port in enumerate(ports)]

    @classmethod
    def accept(cls, exchange: Exchange, ports: list[int]) -> None:
        """Switch to WebSocket."""
        side = _switched(exchange, _chosen(exchange) or "")
        side.attach(cls(side, ports))

    async def _forward(self, channel: int, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        self._writers[channel] = writer
        writer.write(self._early.pop(channel, b""))
        while data := await reader.read(32768):
            self._send(channel, data)
        writer.close()
        self._side.write(bytes(self._frames.close(CloseReason.NORMAL_CLOSURE)))
        self._side.finish()

    def _send(self, channel: int, data: bytes) -> None:
        self._side.write(bytes(self._frames.send_data(bytes([channel]) + data, fin=True)))

    def receive(self, data: bytes) -> None:
        """Pass the bytes that the client has sent on to the ports."""
        self._frames.receive_bytes(data)
        for frame in self._frames.received_frames():
            if frame.opcode in (Opcode.BINARY, Opcode.CONTINUATION) and isinstance(frame.payload, bytes | bytearray):
                self._message += frame.payload
                if frame.message_finished:
                    self._take(self._message[0], self._message[1:])
                    self._message = b""

    def _take(self, channel: int, data: bytes) -> None:
        if channel in self._writers:
            self._writers[channel].write(data)
        else:
            self._early[channel] = self._early.get(channel, b"") + data

    def resume(self) -> None:
        """Do nothing, because the server writes little."""

    def end(self) -> None:
        """Close all connections to ports."""
        for task in self._tasks:
            task.cancel()
        for writer in self._writers.values():
            writer.close()


class SpdyCommand:
    """The channels of one command for a client that uses SPDY."""

    def __init__(self, side: Side, wanted: list[int]) -> None:
        self.sizes: list[bytes] = []
        self._channels = SpdyChannels(side, wanted=wanted, is_client=False)
        self._input: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = asyncio.Event()
        self._room.set()
        self._channels.open(self)

    @classmethod
    def accept(cls, exchange: Exchange, wanted: list[int]) -> SpdyCommand:
        """Switch to SPDY."""
        return cls(exchange.switch(spdy_answer("v4.channel.k8s.io")), wanted)

    async def read(self) -> bytes:
        """Return the next input of the command; it is empty at the end of the input."""
        data = await self._input.get()
        if self._input.qsize() < 8:
            self._channels.resume_reading()
        return data

    def stop_reading(self) -> None:
        """End the input of the command, because the command has ended."""
        self._input.put_nowait(b"")

    def send(self, channel: int, data: bytes) -> None:
        """Write bytes to a channel."""
        self._channels.write(channel, data)
        if self._channels.is_paused:
            self._room.clear()

    async def drain(self) -> None:
        """Wait until the client has read so much that more can be written."""
        await self._room.wait()

    def finish(self) -> None:
        """Close the connection after everything was sent."""
        self._channels.finish()

    def receive(self, channel: int, data: bytes) -> None:
        """Process the frames that the client has sent."""
        if channel == 4:
            self.sizes.append(data)
            return
        self._input.put_nowait(data)
        if self._input.qsize() >= 8:
            self._channels.pause_reading()

    def end_of(self, channel: int) -> None:
        """Record that the input of the command has ended."""
        if channel == 0:
            self._input.put_nowait(b"")

    def resume(self) -> None:
        """Record that the client reads data again."""
        self._room.set()

    def end(self) -> None:
        """Record that the client has disconnected."""
        self._room.set()
        self._input.put_nowait(b"")


class PortForward:
    """The streams of a port-forward: each is connected to a port of this machine."""

    def __init__(self, side: Side) -> None:
        self._connection = SpdyConnection(side, is_client=False, on_stream=self._accept)
        self._tasks: set[asyncio.Task[None]] = set()
        self._connection.open()

    def _accept(self, stream: SpdyStream) -> bool:
        if stream.headers["streamtype"] == "data":
            task = asyncio.ensure_future(self._forward(stream, int(stream.headers["port"])))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            stream.finish()
        return True

    async def _forward(self, stream: SpdyStream, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        stream.attach(_Into(writer))
        while data := await reader.read(65536):
            stream.write(data)
        stream.finish()
        writer.close()


class _Into:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def receive(self, data: bytes) -> None:
        self._writer.write(data)

    def resume(self) -> None:
        pass

    def end(self) -> None:
        self._writer.write_eof()


def spdy_answer(protocol: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of the response that accepts SPDY."""
    return [
        (b"Connection", b"Upgrade"),
        (b"Upgrade", b"SPDY/3.1"),
        (b"X-Stream-Protocol-Version", protocol.encode()),
    ]

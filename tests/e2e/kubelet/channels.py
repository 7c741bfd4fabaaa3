"""The channels of remote commands over WebSocket, as a kubelet serves them; the frames are those of wsproto."""

from __future__ import annotations

import asyncio
import base64
import hashlib

from wsproto.frame_protocol import CloseReason, FrameProtocol, Opcode

from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.tunnel import Side

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CLOSE = 255
"""The channel of v5 on which a client says that another channel has ended."""


class WebSocketChannels:
    """The channels of one command; channel 0 is read, the others are written."""

    def __init__(self, side: Side, protocol: str) -> None:
        self.protocol = protocol
        self.sizes: list[bytes] = []
        """The sizes of the terminal that the client has sent."""
        self._side = side
        self._frames = FrameProtocol(client=False, extensions=[])
        self._input: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = asyncio.Event()
        self._room.set()
        self._message = b""

    @classmethod
    def accept(cls, exchange: Exchange) -> WebSocketChannels | None:
        """Switch to WebSocket if the client asks for one of the protocols."""
        headers = dict(exchange.headers)
        asked = [each.strip() for each in headers.get(b"sec-websocket-protocol", b"").decode().split(",")]
        protocol = next((each for each in asked if each in PROTOCOLS), None)
        if protocol is None or exchange.switching is None:
            return None
        proof = base64.b64encode(hashlib.sha1(headers[b"sec-websocket-key"] + _GUID).digest())
        side = exchange.switch(
            [
                (b"Upgrade", b"websocket"),
                (b"Connection", b"Upgrade"),
                (b"Sec-WebSocket-Accept", proof),
                (b"Sec-WebSocket-Protocol", protocol.encode()),
            ]
        )
        channels = cls(side, protocol)
        side.attach(channels)
        return channels

    async def read(self) -> bytes:
        """Return the next input, empty at its end."""
        data = await self._input.get()
        if self._input.qsize() < 8:
            self._side.resume_reading()
        return data

    def stop_reading(self) -> None:
        """End the input, because the command has ended."""
        self._input.put_nowait(b"")

    def send(self, channel: int, data: bytes) -> None:
        """Write to a channel."""
        self._side.write(bytes(self._frames.send_data(bytes([channel]) + data, fin=True)))
        if self._side.is_paused:
            self._room.clear()

    async def drain(self) -> None:
        """Wait until the client has read enough."""
        await self._room.wait()

    def finish(self) -> None:
        """Close after everything was sent."""
        self._side.write(bytes(self._frames.close(CloseReason.NORMAL_CLOSURE)))
        self._side.finish()

    def receive(self, data: bytes) -> None:
        """Take in what the client has sent."""
        self._frames.receive_bytes(data)
        for frame in self._frames.received_frames():
            if not isinstance(frame.payload, bytes | bytearray):
                continue
            if frame.opcode is Opcode.PING:
                self._side.write(bytes(self._frames.pong(frame.payload)))
            elif frame.opcode in (Opcode.BINARY, Opcode.CONTINUATION):
                self._message += frame.payload
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
        """Note that the client reads again."""
        self._room.set()

    def end(self) -> None:
        """Note that the client is gone."""
        self._room.set()
        self._input.put_nowait(b"")

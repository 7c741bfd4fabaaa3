"""Implements the channels of a remote command: standard input and output, the status, and the terminal's size.

Channels have two transports with equal methods. The first transport is a WebSocket; each message begins with the number
of its channel. The second transport is SPDY with one stream per channel (apimachinery `pkg/util/remotecommand`,
client-go `tools/remotecommand`).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from ctrlmgr.http.spdy.spdy_connection import SpdyConnection, SpdyStream
from ctrlmgr.http.tunnel import Receiver, Side
from ctrlmgr.http.websocket import TEXT, Messages, WebSocket

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
STATUS: Final = 3
SIZE: Final = 4
NAMES: Final = ("stdin", "stdout", "stderr", "error", "resize")
"""The stream types of the channels in SPDY."""
STREAM_TYPE: Final = "streamtype"
"""The header of a SPDY stream that names the stream's channel."""
_CLOSE: Final = 255
"""The channel of protocol version 5 on which messages announce that another channel has ended."""

_OPENS_WITHIN: Final = 30.0
"""Seconds within which a SPDY client must open all its streams (kubelet `pkg/cri/streaming`)."""

V5: Final = "v5.channel.k8s.io"
WEBSOCKET_PROTOCOLS: Final = (
    V5,
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
)
SPDY_PROTOCOLS: Final = ("v4.channel.k8s.io",)
"""The WebSocket subprotocols of remote commands, the newest first."""


class CommandInput(Protocol):
    """Receives the input of a remote command's channels. The methods are called on the event loop."""

    def receive(self, channel: int, data: bytes) -> None:
        """Process bytes that arrived on a channel."""

    def end_of(self, channel: int) -> None:
        """Handle the end of a channel's input."""

    def resume(self) -> None:
        """Continue to write output, because the peer accepts more bytes."""

    def end(self) -> None:
        """Handle the end of the connection."""


class Channels(Protocol):
    """The channels of a remote command on one connection. Used on the event loop's thread only."""

    @property
    def is_paused(self) -> bool:
        """Whether the peer does not read its pending output."""

    def open(self, command: CommandInput) -> None:
        """Pass all input of the channels to `command`. `open` must be called only once."""

    def write(self, channel: int, data: bytes) -> None:
        """Send bytes on a channel; if the command does not have the channel, drop the bytes."""

    def end_of(self, channel: int) -> None:
        """End the output of a channel."""

    def pause_reading(self) -> None:
        """Stop reading from the peer."""

    def resume_reading(self) -> None:
        """Continue reading from the peer."""

    def finish(self) -> None:
        """Close the connection after the peer has read all output."""

    def abort(self) -> None:
        """Close the connection at once."""


class WebSocketChannels(Messages):
    """The channels of a remote command for a WebSocket client."""

    def __init__(self, side: Side, protocol: str) -> None:
        """Create the channels for one of `WEBSOCKET_PROTOCOLS` on `side`."""
        self._socket = WebSocket(side)
        self._is_text = "base64" in protocol
        self._command: CommandInput | None = None

    @property
    def is_paused(self) -> bool:
        """Whether the client does not read its pending output."""
        return self._socket.is_paused

    def open(self, command: CommandInput) -> None:
        """Pass all input of the channels to `command`."""
        self._command = command
        self._socket.open(self)

    def write(self, channel: int, data: bytes) -> None:
        """Send bytes on a channel."""
        if self._is_text:
            self._socket.send(b"%d" % channel + base64.b64encode(data), TEXT)
        else:
            self._socket.send(bytes((channel,)) + data)

    def end_of(self, channel: int) -> None:
        """Do nothing, because on a WebSocket only the end of the connection ends output."""

    def pause_reading(self) -> None:
        """Stop reading from the client."""
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading from the client."""
        self._socket.resume_reading()

    def finish(self) -> None:
        """Close the connection after the client has read all output."""
        self._socket.finish()

    def abort(self) -> None:
        """Close the connection at once."""
        self._socket.abort()

    # The WebSocket calls the following methods.

    def message(self, data: bytes) -> None:
        """Pass a message to its channel; a malformed message closes the connection."""
        if self._command is None or not data:
            return
        channel, content = data[0], data[1:]
        if self._is_text:
            try:
                channel, content = channel - ord("0"), base64.b64decode(content, validate=True)
            except binascii.Error:
                self._socket.finish(1007)
                return
        if channel == _CLOSE and content:
            self._command.end_of(content[0])
        elif channel in (STDIN, SIZE):
            self._command.receive(channel, content)

    def resume(self) -> None:
        """Continue to write output, because the client accepts more bytes."""
        if self._command is not None:
            self._command.resume()

    def end(self) -> None:
        """Report the end of the connection to the command."""
        if self._command is not None:
            self._command.end()


class SpdyChannels:
    """The channels of a remote command on a SPDY connection, from a client or to a server."""

    def __init__(self, side: Side, *, wanted: Sequence[int], is_client: bool) -> None:
        """Create the SPDY channels `wanted` on `side`."""
        self._connection = SpdyConnection(
            side, is_client=is_client, on_stream=self._accept, on_resume=self._resumed, on_end=self._ended
        )
        self._expected = wanted
        self._is_client = is_client
        self._streams: dict[int, SpdyStream] = {}
        self._command: CommandInput | None = None
        self._is_started = self._is_finishing = self._is_over = False
        self._early: list[tuple[int, bytes]] = []

    @property
    def is_paused(self) -> bool:
        """Whether the peer does not read its pending output."""
        return self._connection.is_paused

    def open(self, command: CommandInput) -> None:
        """Pass all input to `command`, after all channels are open.

        If this process is the client, this method opens the channels. If this process is the server, the peer opens the
        channels.
        """
        self._command = command
        self._connection.open()
        if self._is_client:
            for channel in self._expected:
                stream = self._connection.new_stream({STREAM_TYPE: NAMES[channel]})
                self._streams[channel] = stream
            self._start()
        else:
            asyncio.get_running_loop().call_later(_OPENS_WITHIN, self._expire)

    def write(self, channel: int, data: bytes) -> None:
        """Send bytes on a channel; until the client has opened all channels, keep the bytes."""
        if not self._is_started:
            self._early.append((channel, data))
        elif channel in self._streams:
            self._streams[channel].write(data)

    def end_of(self, channel: int) -> None:
        """End the output of a channel."""
        stream = self._streams.get(channel)
        if stream is not None:
            stream.finish()

    def pause_reading(self) -> None:
        """Stop reading from the peer."""
        self._connection.pause()

    def resume_reading(self) -> None:
        """Continue reading from the peer."""
        self._connection.unpause()

    def finish(self) -> None:
        """Close the connection after the peer has read all output."""
        if not (self._is_started or self._is_over):
            self._is_finishing = True  # the connection closes after the client has opened all channels
            return
        for stream in list(self._streams.values()):
            stream.finish()
        self._connection.finish()

    def abort(self) -> None:
        """Close the connection at once."""
        self._connection.abort()

    def _expire(self) -> None:
        if not self._is_started:
            self.abort()

    def _accept(self, stream: SpdyStream) -> bool:
        """Assign a stream that the client has opened to its channel; return whether the stream is accepted."""
        name = stream.headers.get(STREAM_TYPE, "")
        if self._is_client or name not in NAMES or NAMES.index(name) in self._streams:
            return False
        self._streams[NAMES.index(name)] = stream
        if set(self._expected) <= self._streams.keys():
            self._start()
        return True

    def _start(self) -> None:
        self._is_started = True
        early, self._early = self._early, []
        for channel, data in early:
            self.write(channel, data)
        for channel, stream in self._streams.items():
            if self._command is not None and stream.receiver is None:
                stream.attach(_OfStream(channel, self._command))
        if self._is_finishing:
            self.finish()

    def _resumed(self) -> None:
        if self._command is not None:
            self._command.resume()

    def _ended(self) -> None:
        self._is_over = True
        if self._command is not None:
            self._command.end()


class _OfStream(Receiver):
    """Passes the input of one stream to the remote command."""

    def __init__(self, channel: int, command: CommandInput) -> None:
        self._channel = channel
        self._command = command

    def receive(self, data: bytes) -> None:
        self._command.receive(self._channel, data)

    def resume(self) -> None:
        """Do nothing, because the connection, not the stream, notifies the command."""

    def end(self) -> None:
        self._command.end_of(self._channel)


def wanted_channels(options: Iterable[str]) -> list[int]:
    """Return the channels of a remote command with these flags: `stdin`, `stdout`, `stderr`, `tty`."""
    flags = set(options)
    has_errors = "stderr" in flags and "tty" not in flags  # a terminal has only one output
    names = ["error", *(name for name in ("stdin", "stdout") if name in flags), *(["stderr"] if has_errors else [])]
    return [NAMES.index(name) for name in (*names, *(["resize"] if "tty" in flags else []))]

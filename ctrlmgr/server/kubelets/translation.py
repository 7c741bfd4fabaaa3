"""Translates the channels of a remote command from a WebSocket connection to a SPDY connection.

Only version 5 of the WebSocket protocol lets a client end the command's input; kubelets that do not accept version 5
need the translation. Source: apiserver `pkg/util/proxy/streamtranslator.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from ctrlmgr.api import status_responses
from ctrlmgr.errors import InternalError
from ctrlmgr.server.kubelets.channels import STATUS, STDERR, STDIN, STDOUT, Channels

SUCCESS: Final = msgspec.json.encode({"metadata": {}, "status": "Success"})
"""The status of a remote command that has ended with exit code 0."""


class Translation:
    """Transfers a command's channels between a client and a kubelet until both connections are closed."""

    def __init__(self, client: Channels, kubelet: Channels, requested: Sequence[int]) -> None:
        """Start the translation of a remote command that has the channels `requested`."""
        self._both = (client, kubelet)
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open = 2
        kubelet.open(_FromKubelet(client, kubelet, self, requested))
        client.open(_FromClient(client, kubelet, self))
        lowest = next((each for each in (STDOUT, STDERR) if each in requested), STATUS)
        client.write(lowest, b"")  # notifies the client that the connection is established

    async def run(self) -> None:
        """Wait until both connections are closed. A cancellation of the coroutine aborts both connections."""
        try:
            await self._over
        finally:
            self.abort()

    def abort(self) -> None:
        """Close both connections at once."""
        for channels in self._both:
            channels.abort()

    def note_end(self) -> None:
        """Handle the end of one of the two connections."""
        self._open -= 1
        if not self._open and not self._over.done():
            self._over.set_result(None)


class _FromClient:
    """The receiver that passes the client's input to the kubelet."""

    def __init__(self, client: Channels, kubelet: Channels, translation: Translation) -> None:
        self._client = client
        self._kubelet = kubelet
        self._translation = translation

    def receive(self, channel: int, data: bytes) -> None:
        self._kubelet.write(channel, data)
        if self._kubelet.is_paused:
            self._client.pause_reading()

    def end_of(self, channel: int) -> None:
        if channel == STDIN:
            self._kubelet.end_of(channel)

    def resume(self) -> None:
        self._kubelet.resume_reading()

    def end(self) -> None:
        self._translation.note_end()
        self._kubelet.finish()


class _FromKubelet:
    """The receiver that passes the kubelet's output, and finally the status, to the client."""

    def __init__(self, client: Channels, kubelet: Channels, translation: Translation, requested: Sequence[int]) -> None:
        self._client = client
        self._kubelet = kubelet
        self._translation = translation
        self._left = {each for each in requested if each in (STDOUT, STDERR, STATUS)}
        self._status = bytearray()

    def receive(self, channel: int, data: bytes) -> None:
        if channel == STATUS:
            self._status += data
            return
        self._client.write(channel, data)
        if self._client.is_paused:
            self._kubelet.pause_reading()

    def end_of(self, channel: int) -> None:
        self._left.discard(channel)
        if not self._left:
            self._tell(bytes(self._status) or SUCCESS)

    def resume(self) -> None:
        self._client.resume_reading()

    def end(self) -> None:
        self._translation.note_end()
        lost = status_responses.encode(
            status_responses.failure(InternalError("Internal error occurred: unexpected EOF"))
        )
        self._tell(bytes(self._status) or lost)

    def _tell(self, encoded: bytes) -> None:
        """Send the status of the remote command, only once, and close the connection."""
        self._client.write(STATUS, encoded)
        self._client.finish()
        self._kubelet.finish()

"""Sends logs of containers, as a whole or line by line while the container writes.

Guarantees:
- A client that follows a log receives each line as soon as the line is available. The server reads the pod again
  regularly, and ends the log when the pod was deleted.
- A client that reads none of the log for `READ_PATIENCE` seconds is disconnected.
- All logs that clients follow end when the server stops.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS
from ctrlmgr.engine.strategy import View
from ctrlmgr.http.response_stream import Stream
from ctrlmgr.server.connect_subresources import ContainerLogReader, node_of
from ctrlmgr.server.presenting.message_streams import asks_for_messages, begin_log
from ctrlmgr.server.presenting.responses import NO_CACHE, NO_SNIFFING, TEXT_TYPE, Response
from ctrlmgr.server.request import Request
from ctrlmgr.server.watch.watching import READ_PATIENCE

_HEADERS: Final = (TEXT_TYPE, NO_CACHE, NO_SNIFFING)
_LOOK: Final = 0.25
"""The maximum number of seconds between two reads of the pod, because the pod's state may change."""


class Logs:
    """Sends logs of containers. Used on the event loop's thread only."""

    def __init__(self, view: View) -> None:
        """Create an instance that reads pods and nodes from `view`."""
        self._view = view
        self._waiting: set[asyncio.Future[None]] = set()
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all logs that clients follow, and end logs that clients request later at once."""
        self._closing.set()
        for each in self._waiting:
            _wake(each)

    async def send_log(self, request: Request, reading: ContainerLogReader, pod: Object) -> None:
        """Answer with a log; raises `Disconnected` if the client disconnects before the log ends."""
        piece = reading.more(pod, node_of(pod, self._view))
        wait = piece.wait
        if wait is None and not asks_for_messages(request):
            await request.respond(Response(200, piece.data, _HEADERS))
            return
        stream = await begin_log(request, _HEADERS)
        stream.send(piece.data)
        while wait is not None and not self._closing.is_set():
            await stream.drain(READ_PATIENCE)
            await self._pass(stream, min(wait, _LOOK))
            now = self._view.get(PODS, pod.key)
            piece = reading.more(now, None if now is None else node_of(now, self._view))
            stream.send(piece.data)
            wait = piece.wait
        stream.end()

    async def _pass(self, stream: Stream, seconds: float) -> None:
        """Return after `seconds`, or earlier if the client disconnects or the server stops."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        stream.on_lost(partial(_wake, over))
        timer = loop.call_later(seconds, _wake, over)
        self._waiting.add(over)
        try:
            await over
        finally:
            self._waiting.discard(over)
            timer.cancel()


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)

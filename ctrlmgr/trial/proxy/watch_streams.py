"""The operator's open watches: they can be held, delayed, ended, and expired.

Guarantees: events of one watch stay in their order, and no event is lost while its watch is open. After `release`, held
events are delivered at once.
"""

from __future__ import annotations

import json
import math
import socket
import threading
from contextlib import suppress

from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import Clock

_BOOKMARK = b'{"type":"BOOKMARK"'
_INITIAL_EVENTS_END = b"k8s.io/initial-events-end"
EXPIRED = (
    json.dumps(
        {
            "type": "ERROR",
            "object": {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "The resourceVersion for the provided watch is too old.",
                "reason": "Expired",
                "code": 410,
            },
        }
    ).encode()
    + b"\n"
)


class WatchStream:
    """One open watch."""

    def __init__(self, resource: Resource, upstream: socket.socket) -> None:
        """Create a watch of `resource` whose events arrive from the socket `upstream`."""
        self.resource = resource
        self.last_words = b""
        """The bytes that the operator gets when the trial ends the watch."""
        self.is_ended = False
        self._upstream = upstream

    def end(self, last_words: bytes) -> None:
        """Let the thread that relays the watch send `last_words` and end the watch."""
        self.last_words, self.is_ended = last_words, True
        with suppress(OSError):  # the watch may end at the same time
            # The method of TLS sockets is not safe while another thread reads from the socket.
            socket.socket.shutdown(self._upstream, socket.SHUT_RDWR)


class WatchStreams:
    """All open watches of the operator; thread-safe."""

    def __init__(self, *, clock: Clock) -> None:
        """Create a set without watches."""
        self._clock = clock
        self._changed = threading.Condition()
        self._open: set[WatchStream] = set()
        self._held_until = 0.0
        self.delays: dict[Resource, float] = {}
        """The delay of events in seconds, by resource."""
        self.drops_bookmarks = False

    @property
    def resources(self) -> frozenset[Resource]:
        """The resources of the open watches."""
        with self._changed:
            return frozenset(stream.resource for stream in self._open)

    def opened(self, stream: WatchStream) -> None:
        """Add a watch."""
        with self._changed:
            self._open.add(stream)

    def closed(self, stream: WatchStream) -> None:
        """Remove a watch."""
        with self._changed:
            self._open.discard(stream)

    def hold(self, seconds: float = math.inf) -> None:
        """Deliver no events for `seconds`, or until `release`."""
        with self._changed:
            self._held_until = self._clock.monotonic() + seconds
            self._changed.notify_all()

    def release(self) -> None:
        """Deliver events again, beginning with those that were held."""
        with self._changed:
            self._held_until = 0.0
            self._changed.notify_all()

    def end(self) -> None:
        """End all open watches, as a server does after some minutes."""
        self._end(b"")

    def expire(self) -> None:
        """End all open watches with the error 410, as a server does when their revision was compacted."""
        self._end(EXPIRED)

    def _end(self, last_words: bytes) -> None:
        with self._changed:
            ended = [*self._open]
            for stream in ended:
                stream.end(last_words)
            self._open.clear()
            self._changed.notify_all()

    def passed(self, stream: WatchStream, lines: bytes) -> bytes:
        """Return the events among `lines` that are delivered; wait while they are held or delayed."""
        if self.drops_bookmarks:
            lines = b"".join(line for line in lines.splitlines(keepends=True) if not _is_plain_bookmark(line))
        until = self._clock.monotonic() + self.delays.get(stream.resource, 0.0)
        with self._changed:
            while not stream.is_ended and (left := max(until, self._held_until) - self._clock.monotonic()) > 0:
                self._clock.wait(self._changed, left)
        return b"" if stream.is_ended else lines


def _is_plain_bookmark(line: bytes) -> bool:
    """Return whether a line is a bookmark that the server may omit; the end of initial events may not be omitted."""
    return line.startswith(_BOOKMARK) and _INITIAL_EVENTS_END not in line

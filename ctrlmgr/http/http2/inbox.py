"""The frames of an HTTP/2 connection that were received but not processed yet, in order.

Guarantees: frames are returned in the order of their bytes, even if processing pauses between them. The first frame
must be SETTINGS (RFC 9113, section 3.4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ctrlmgr.http.http2.frames import ACK, SETTINGS, Code, ConnectionFault, Frame, FrameReader
from ctrlmgr.http.size_limits import Bounds


class Inbox:
    """The received frames of one connection."""

    __slots__ = ("_frames", "_is_greeted", "_pieces", "_reader")

    def __init__(self, bounds: Bounds) -> None:
        """Create an inbox that has received no data."""
        self._reader = FrameReader(bounds)
        self._pieces: deque[bytes] = deque()
        self._frames: Iterator[Frame] | None = None  # the iterator over the frames of the current piece of input
        self._is_greeted = False

    @property
    def is_incomplete(self) -> bool:
        """Return whether the preface, a frame or a header block is incomplete."""
        return self._reader.is_incomplete

    @property
    def may_have_more(self) -> bool:
        """Return whether `take` may return a frame without receiving more input."""
        return self._frames is not None or bool(self._pieces)

    def put(self, data: bytes) -> None:
        """Add received bytes."""
        self._pieces.append(data)

    def take(self) -> Frame | None:
        """Return the next complete frame, None if no frame is complete.

        Raises `ConnectionFault` if the frame is invalid.
        """
        while self.may_have_more:
            if self._frames is None:
                self._frames = self._reader.feed(self._pieces.popleft())
            for frame in self._frames:
                return frame if self._is_greeted else self._greeting(frame)
            self._frames = None
        return None

    def clear(self) -> None:
        """Drop all received bytes from now on."""
        self._pieces.clear()
        self._frames = None

    def _greeting(self, frame: Frame) -> Frame:
        if frame.kind != SETTINGS or frame.flags & ACK:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "the first frame is not a SETTINGS frame")
        self._is_greeted = True
        return frame

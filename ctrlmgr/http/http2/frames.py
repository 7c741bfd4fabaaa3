"""Parses and encodes frames of HTTP/2 (RFC 9113, sections 4, 6 and 7).

Guarantees: a frame is yielded when it is complete, and refused if it exceeds the maximum size. A header block is
yielded as one frame, even if the client sent it in several frames; its bytes and frames are limited. The work is linear
in the number of received bytes, even if these arrive in small pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.http.size_limits import Bounds

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The bytes that a client must send first (the preface)."""

LARGEST: Final = 16 * 1024
"""Maximum payload of a frame in bytes, the default of SETTINGS_MAX_FRAME_SIZE."""

WIDEST: Final = (1 << 31) - 1
"""The maximum size of a flow-control window in bytes, which is also the maximum number of a stream."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
WITH_PRIORITY = 0x20
ON_ITSELF = 0x100
"""The flag of a HEADERS frame whose stream depends on itself.

Frames from clients have flags of 8 bits, so no flag from a client has this value.
"""
_BESIDES = PADDED | WITH_PRIORITY
"""The flags that say that a payload contains padding or priority fields."""

_OF_STREAMS = frozenset({DATA, HEADERS, PRIORITY, RST_STREAM, CONTINUATION})
_OF_CONNECTIONS = frozenset({SETTINGS, PING, GOAWAY})
_OF_REQUESTS = (DATA, HEADERS)
_SIZES = {PRIORITY: 5, RST_STREAM: 4, PING: 8, WINDOW_UPDATE: 4}
_OF_BLOCKS = (HEADERS, CONTINUATION)
_HEAD = Struct(">HBBBI")
_HEAD_SIZE = _HEAD.size
_SETTING = Struct(">HI")
_NUMBER = Struct(">I")
_MOST_SETTINGS = 100
"""Maximum number of settings in one SETTINGS frame; Go refuses more (`processSettings`)."""


class Setting(IntEnum):
    """The identifiers of HTTP/2 settings."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class Code(IntEnum):
    """HTTP/2 error codes of streams and connections."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class Fault(CtrlmgrError):
    """A violation of the protocol by the client."""

    def __init__(self, code: Code, message: str) -> None:
        """Create the violation; `code` is the error code that is sent when the stream or the connection ends."""
        super().__init__(message)
        self.code = code


class ConnectionFault(Fault):
    """A violation of the protocol that ends the connection."""


class StreamFault(Fault):
    """A violation of the protocol that ends one stream."""


class Frame(NamedTuple):
    """An HTTP/2 frame that the client has sent."""

    kind: int
    flags: int
    stream: int
    payload: bytes


class FrameReader:
    """Parses the frames of one connection."""

    __slots__ = ("_block", "_bounds", "_count", "_greeting", "_held", "_opening")

    def __init__(self, bounds: Bounds) -> None:
        """Create a parser that has received no data."""
        self._bounds = bounds
        self._greeting = PREFACE  # the bytes of the preface that have not been received
        self._held = bytearray()
        self._opening: Frame | None = None  # the HEADERS frame whose header block is incomplete
        self._block = bytearray()
        self._count = 0

    @property
    def is_incomplete(self) -> bool:
        """Return whether the preface, a frame or a header block is incomplete."""
        return bool(self._greeting or self._held) or self._opening is not None

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete after `data` was received.

        Raises `ConnectionFault` if a frame is invalid.
        """
        if self._greeting:
            data = self._greeted(data)
        if self._held:
            self._held += data
            if not self._is_whole():
                return
            data = bytes(self._held)
            self._held.clear()
        at, there = 0, len(data)
        while there - at >= _HEAD_SIZE:
            high, low, kind, flags, stream = _HEAD.unpack_from(data, at)
            size = high << 8 | low
            if size > LARGEST:
                raise ConnectionFault(Code.FRAME_SIZE_ERROR, f"a frame of {size} bytes exceeds the maximum size")
            end = at + _HEAD_SIZE + size
            if end > there:
                break
            frame = _checked(Frame(kind, flags, stream & WIDEST, data[at + _HEAD_SIZE : end]))
            at = end
            if kind in _OF_BLOCKS or self._opening is not None:
                whole = self._with_block(frame)
                if whole is not None:
                    yield whole
            else:
                yield frame
        self._held += data[at:]

    def _greeted(self, data: bytes) -> bytes:
        """Return the bytes after the preface; raises `ConnectionFault` if the preface is wrong."""
        awaited = self._greeting
        if data[: len(awaited)] != awaited[: len(data)]:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "the connection does not begin with the HTTP/2 preface")
        self._greeting = awaited[len(data) :]
        return data[len(awaited) :]

    def _is_whole(self) -> bool:
        """Return whether the received bytes contain a complete frame, or an obviously invalid frame."""
        held = self._held
        return len(held) >= _HEAD_SIZE and len(held) - _HEAD_SIZE >= min(int.from_bytes(held[:3], "big"), LARGEST)

    def _with_block(self, frame: Frame) -> Frame | None:
        """Return a HEADERS frame with the whole header block, None if the block is incomplete.

        Raises `ConnectionFault` if the block is invalid.
        """
        opening = self._opening
        if opening is None:
            if frame.kind == CONTINUATION:
                raise ConnectionFault(Code.PROTOCOL_ERROR, "CONTINUATION frame without a preceding HEADERS frame")
            if frame.flags & _BESIDES:
                frame = _block_alone(frame)
            if frame.flags & END_HEADERS:
                return frame
            self._opening, self._block, self._count = frame, bytearray(frame.payload), 0
            return None
        if frame.kind != CONTINUATION or frame.stream != opening.stream:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "another frame was sent before the end of a header block")
        self._block += frame.payload
        self._count += 1
        if len(self._block) > self._bounds.head_bytes or self._count > self._bounds.header_count:
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, "the header block is too long")
        if not frame.flags & END_HEADERS:
            return None
        self._opening, block = None, bytes(self._block)
        self._block.clear()
        return opening._replace(payload=block)


def head(size: int, kind: int, flags: int, stream: int) -> bytes:
    """Return the frame header for a payload of `size` bytes."""
    return _HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream)


def settings(values: Mapping[Setting, int]) -> bytes:
    """Return a SETTINGS frame."""
    payload = b"".join(_SETTING.pack(setting, value) for setting, value in values.items())
    return head(len(payload), SETTINGS, 0, 0) + payload


def _checked(frame: Frame) -> Frame:
    """Return the frame if its stream and size are valid; raises `ConnectionFault` if they are not."""
    kind, _, stream, payload = frame
    if stream and kind in _OF_REQUESTS:
        return frame
    if (not stream and kind in _OF_STREAMS) or (stream and kind in _OF_CONNECTIONS):
        raise ConnectionFault(Code.PROTOCOL_ERROR, f"a frame of type {kind} is not allowed on stream {stream}")
    if len(payload) != _SIZES.get(kind, len(payload)) or (kind == GOAWAY and len(payload) < 8):
        raise ConnectionFault(Code.FRAME_SIZE_ERROR, f"a frame of type {kind} has the invalid size {len(payload)}")
    return frame


def read_settings(frame: Frame) -> dict[int, int]:
    """Return the values of a SETTINGS frame, empty for an acknowledgement.

    Raises `ConnectionFault` if a value is invalid.
    """
    if len(frame.payload) % _SETTING.size or (frame.flags & ACK and frame.payload):
        raise ConnectionFault(Code.FRAME_SIZE_ERROR, "the size of the SETTINGS frame is not valid")
    if len(frame.payload) > _MOST_SETTINGS * _SETTING.size:
        raise ConnectionFault(Code.PROTOCOL_ERROR, "the SETTINGS frame has too many settings")
    pairs = list(_SETTING.iter_unpack(frame.payload))
    for setting, value in pairs:
        _check_setting(setting, value)
    return dict(pairs)


def _check_setting(setting: int, value: int) -> None:
    if setting == Setting.INITIAL_WINDOW_SIZE and value > WIDEST:
        raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "SETTINGS_INITIAL_WINDOW_SIZE exceeds the maximum")
    if setting == Setting.ENABLE_PUSH and value > 1:
        raise ConnectionFault(Code.PROTOCOL_ERROR, "SETTINGS_ENABLE_PUSH must be 0 or 1")
    if setting == Setting.MAX_FRAME_SIZE and not LARGEST <= value < 1 << 24:
        raise ConnectionFault(Code.PROTOCOL_ERROR, "SETTINGS_MAX_FRAME_SIZE is outside of the valid range")


def read_increment(frame: Frame) -> int:
    """Return the increment of a WINDOW_UPDATE frame, in bytes."""
    return int(_NUMBER.unpack(frame.payload)[0]) & WIDEST


def window_update(stream: int, count: int) -> bytes:
    """Return a WINDOW_UPDATE frame; the stream number 0 means the whole connection."""
    return head(_NUMBER.size, WINDOW_UPDATE, 0, stream) + _NUMBER.pack(count)


def reset(stream: int, code: Code) -> bytes:
    """Return an RST_STREAM frame."""
    return head(_NUMBER.size, RST_STREAM, 0, stream) + _NUMBER.pack(code)


def goaway(last: int, code: Code, why: str = "") -> bytes:
    """Return a GOAWAY frame; `last` is the number of the last stream whose request the server answers."""
    payload = _NUMBER.pack(last) + _NUMBER.pack(code) + why.encode()
    return head(len(payload), GOAWAY, 0, 0) + payload


def headers(stream: int, block: bytes, flags: int) -> bytes:
    """Return the frames of a header block, including CONTINUATION frames if the block is long."""
    size = len(block)
    if size <= LARGEST:
        return head(size, HEADERS, flags | END_HEADERS, stream) + block
    parts = [head(LARGEST, HEADERS, flags, stream) + block[:LARGEST]]
    for at in range(LARGEST, size, LARGEST):
        part = block[at : at + LARGEST]
        parts.append(head(len(part), CONTINUATION, END_HEADERS if at + LARGEST >= size else 0, stream) + part)
    return b"".join(parts)


def _block_alone(frame: Frame) -> Frame:
    """Return a HEADERS frame without padding and priority; raises `ConnectionFault` if the padding is invalid."""
    block = unpadded(frame)
    at = 1 if frame.flags & PADDED else 0
    mark = ON_ITSELF if frame.flags & WITH_PRIORITY and depends_on_itself(frame, at) else 0
    return Frame(HEADERS, frame.flags & ~_BESIDES | mark, frame.stream, block)


def depends_on_itself(frame: Frame, at: int = 0) -> bool:
    """Return whether the stream number at offset `at` of the payload equals the number of the frame's own stream."""
    return int(_NUMBER.unpack_from(frame.payload, at)[0]) & WIDEST == frame.stream


def unpadded(frame: Frame) -> bytes:
    """Return the content of a DATA or HEADERS frame without padding.

    Raises `ConnectionFault` if the padding is invalid.
    """
    payload, begins = frame.payload, 0
    if not frame.flags & _BESIDES:
        return payload
    ends = len(payload)
    if frame.flags & PADDED:
        if not payload:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, "the padded frame contains no padding length")
        begins, ends = 1, ends - payload[0]
    if frame.kind == HEADERS and frame.flags & WITH_PRIORITY:
        begins += 5
    if begins > ends:
        raise ConnectionFault(Code.PROTOCOL_ERROR, "the frame is shorter than its padding and priority")
    return payload[begins:ends]

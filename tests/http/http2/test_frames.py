"""Tests of frames that arrive split at any position, and of invalid frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import PREFACE, Code, ConnectionFault, Frame, FrameReader
from ctrlmgr.http.size_limits import DEFAULT, Bounds

BOUNDS = Bounds(head_bytes=100, header_count=5)


def frames_of(*pieces: bytes, bounds: Bounds = DEFAULT) -> list[Frame]:
    reader = FrameReader(bounds)
    return [frame for piece in (PREFACE, *pieces) for frame in reader.feed(piece)]


def framed(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return frames.head(len(payload), kind, flags, stream) + payload


FRAMES = st.builds(
    Frame,
    st.sampled_from([frames.DATA, 99]),
    st.integers(0, 255),
    st.integers(1, 5),
    st.binary(max_size=300),
)


@given(st.lists(FRAMES, max_size=5), st.integers(1, 50))
def test_frames_are_equal_for_any_chunks(sent: list[Frame], size: int) -> None:
    data = b"".join(framed(*frame) for frame in sent)
    reader = FrameReader(DEFAULT)
    data = PREFACE + data
    assert [frame for at in range(0, len(data), size) for frame in reader.feed(data[at : at + size])] == sent
    assert not reader.is_incomplete


def test_the_parser_reports_whether_it_awaits_input() -> None:
    reader = FrameReader(DEFAULT)
    data = PREFACE + framed(frames.HEADERS, 0, 1, b"a") + framed(frames.CONTINUATION, frames.END_HEADERS, 1, b"b")
    for at in range(len(data)):
        assert reader.is_incomplete is (at != len(PREFACE))
        list(reader.feed(data[at : at + 1]))
    assert not reader.is_incomplete


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx"])
def test_a_wrong_protocol_is_detected_immediately(data: bytes) -> None:
    reader = FrameReader(DEFAULT)
    if PREFACE.startswith(data):
        assert list(reader.feed(data)) == []
        data = b"X"
    with pytest.raises(ConnectionFault, match="HTTP/2 preface"):
        list(reader.feed(data))


def test_a_continued_header_block_is_one_frame() -> None:
    whole = framed(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, b"abcdef")
    parts = framed(frames.HEADERS, frames.END_STREAM, 1, b"ab") + framed(frames.CONTINUATION, 0, 1, b"")
    parts += framed(frames.CONTINUATION, 0, 1, b"cde") + framed(frames.CONTINUATION, frames.END_HEADERS, 1, b"f")
    assert [(frame.stream, frame.payload, frame.flags & frames.END_STREAM) for frame in frames_of(whole, parts)] == [
        (1, b"abcdef", 1)
    ] * 2


@pytest.mark.parametrize(
    ("flags", "payload", "block"),
    [
        (0, b"block", b"block"),
        (frames.PADDED, b"\x02block\0\0", b"block"),
        (frames.WITH_PRIORITY, b"\0\0\0\0\x07block", b"block"),
        (frames.PADDED | frames.WITH_PRIORITY, b"\x01\0\0\0\0\x07block\0", b"block"),
        (frames.PADDED, b"\0", b""),
    ],
)
def test_padding_and_priorities_are_no_part_of_a_block(flags: int, payload: bytes, block: bytes) -> None:
    (frame,) = frames_of(framed(frames.HEADERS, flags | frames.END_HEADERS, 1, payload))
    assert frame.payload == block


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff\xff\xff\x00\0\0\0\0\1", Code.FRAME_SIZE_ERROR),
        (frames.head(frames.LARGEST + 1, frames.DATA, 0, 1), Code.FRAME_SIZE_ERROR),
        (framed(frames.DATA, 0, 0), Code.PROTOCOL_ERROR),
        (framed(frames.HEADERS, frames.END_HEADERS, 0), Code.PROTOCOL_ERROR),
        (framed(frames.PRIORITY, 0, 0, b"12345"), Code.PROTOCOL_ERROR),
        (framed(frames.RST_STREAM, 0, 0, b"1234"), Code.PROTOCOL_ERROR),
        (framed(frames.SETTINGS, 0, 1), Code.PROTOCOL_ERROR),
        (framed(frames.PING, 0, 1, b"12345678"), Code.PROTOCOL_ERROR),
        (framed(frames.GOAWAY, 0, 1, b"12345678"), Code.PROTOCOL_ERROR),
        (framed(frames.PRIORITY, 0, 1, b"1234"), Code.FRAME_SIZE_ERROR),
        (framed(frames.RST_STREAM, 0, 1, b"123"), Code.FRAME_SIZE_ERROR),
        (framed(frames.PING, 0, 0, b"1234567"), Code.FRAME_SIZE_ERROR),
        (framed(frames.GOAWAY, 0, 0, b"1234567"), Code.FRAME_SIZE_ERROR),
        (framed(frames.WINDOW_UPDATE, 0, 0, b"123"), Code.FRAME_SIZE_ERROR),
        (framed(frames.CONTINUATION, frames.END_HEADERS, 1), Code.PROTOCOL_ERROR),
        (framed(frames.HEADERS, 0, 1) + framed(frames.PING, 0, 0, b"12345678"), Code.PROTOCOL_ERROR),
        (framed(frames.HEADERS, 0, 1) + framed(frames.CONTINUATION, 0, 3), Code.PROTOCOL_ERROR),
        (framed(frames.HEADERS, frames.PADDED | frames.END_HEADERS, 1), Code.FRAME_SIZE_ERROR),
        (framed(frames.HEADERS, frames.PADDED | frames.END_HEADERS, 1, b"\x05abc"), Code.PROTOCOL_ERROR),
        (framed(frames.HEADERS, frames.WITH_PRIORITY | frames.END_HEADERS, 1, b"abc"), Code.PROTOCOL_ERROR),
    ],
)
def test_invalid_frames_are_refused(data: bytes, code: Code) -> None:
    with pytest.raises(ConnectionFault) as caught:
        frames_of(data)
    assert caught.value.code is code


@pytest.mark.parametrize("part", [b"", b"a" * 30])
def test_a_header_block_is_bounded_in_bytes_and_in_frames(part: bytes) -> None:
    begun = framed(frames.HEADERS, 0, 1)
    continued = framed(frames.CONTINUATION, 0, 1, part)
    most = 5 if not part else 3
    assert frames_of(begun, *[continued] * most, bounds=BOUNDS) == []
    with pytest.raises(ConnectionFault) as caught:
        frames_of(begun, *[continued] * (most + 1), bounds=BOUNDS)
    assert caught.value.code is Code.ENHANCE_YOUR_CALM


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"12345", Code.FRAME_SIZE_ERROR),
        (b"\0\x04\x80\0\0\0\0\x04\0\0\0\x01", Code.FLOW_CONTROL_ERROR),
        (b"\0\x05\0\0\0\x01\0\x05\0\0\x40\0", Code.PROTOCOL_ERROR),
        (b"".join(bytes((9, at, 0, 0, 0, 0)) for at in range(101)), Code.PROTOCOL_ERROR),
        (b"\0\x04\x80\0\0\0", Code.FLOW_CONTROL_ERROR),
        (b"\0\x02\0\0\0\x02", Code.PROTOCOL_ERROR),
        (b"\0\x05\0\0\x3f\xff", Code.PROTOCOL_ERROR),
        (b"\0\x05\x01\0\0\0", Code.PROTOCOL_ERROR),
    ],
)
def test_invalid_settings_are_refused(payload: bytes, code: Code) -> None:
    with pytest.raises(ConnectionFault) as caught:
        frames.read_settings(Frame(frames.SETTINGS, 0, 0, payload))
    assert caught.value.code is code


def test_the_last_of_repeated_settings_counts() -> None:
    frame = Frame(frames.SETTINGS, 0, 0, b"\0\x04\0\0\0\x64\0\x04\0\0\0\x01")
    assert frames.read_settings(frame) == {frames.Setting.INITIAL_WINDOW_SIZE: 1}


def test_an_acknowledgement_sets_nothing() -> None:
    with pytest.raises(ConnectionFault):
        frames.read_settings(Frame(frames.SETTINGS, frames.ACK, 0, b"\0\x04\0\0\0\0"))


@pytest.mark.parametrize("size", [0, 1, frames.LARGEST, frames.LARGEST + 1, 3 * frames.LARGEST])
def test_a_long_block_is_sent_in_several_frames(size: int) -> None:
    block = bytes(each % 251 for each in range(size))
    bounds = Bounds()
    (frame,) = frames_of(frames.headers(7, block, frames.END_STREAM), bounds=bounds)
    assert (frame.stream, frame.payload, frame.flags & frames.END_STREAM) == (7, block, 1)

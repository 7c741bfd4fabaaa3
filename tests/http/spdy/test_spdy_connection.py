"""Tests of SPDY connections: streams, how streams end, resets, and invalid input."""

from __future__ import annotations

import zlib

import pytest

from ctrlmgr.http.spdy.spdy_connection import SpdyConnection, SpdyStream
from ctrlmgr.http.spdy.spdy_frames import (
    DICTIONARY,
    PING,
    SYN_STREAM,
    HeaderReader,
    HeaderWriter,
    SpdyError,
    control_frame,
    read_frames,
)
from tests.http.pipes import StoringReceiver, pipe


class ConnectedPair:
    """A SPDY client and a server, and the streams that the server has accepted."""

    def __init__(self) -> None:
        self.near, self.far = pipe()
        self.streams: list[SpdyStream] = []
        self.server = SpdyConnection(self.far, is_client=False, on_stream=self._accept)
        self.client = SpdyConnection(self.near, is_client=True)
        self.client.open()
        self.server.open()

    def _accept(self, stream: SpdyStream) -> bool:
        self.streams.append(stream)
        return stream.headers.get("streamtype") != "bad"


def test_the_dictionary_equals_the_protocols() -> None:
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2  # the stream id that every implementation uses


def test_streams_carry_data_in_both_directions_and_end_independently() -> None:
    both = ConnectedPair()
    first = both.client.new_stream({"streamType": "stdin"})
    second = both.client.new_stream({"streamType": "stdout"})
    assert [each.headers["streamtype"] for each in both.streams] == ["stdin", "stdout"]
    received, answered = StoringReceiver(), StoringReceiver()
    first.write(b"x" * 200_000)
    both.streams[0].attach(received)
    first.finish()
    second.attach(answered)
    both.streams[1].write(b"out")
    assert (received.data, received.is_over) == (b"x" * 200_000, True)
    assert (answered.data, answered.is_over) == (b"out", False)
    both.streams[1].finish()
    assert answered.is_over


def test_a_refused_stream_ends() -> None:
    both = ConnectedPair()
    stream, kept = both.client.new_stream({"streamtype": "bad"}), StoringReceiver()
    stream.attach(kept)
    assert kept.is_over


def test_a_paused_stream_pauses_the_connection_until_it_resumes_or_ends() -> None:
    both = ConnectedPair()
    one, two = both.client.new_stream({"streamtype": "a"}), both.client.new_stream({"streamtype": "b"})
    one.pause_reading()
    two.pause_reading()
    one.resume_reading()
    assert not both.near.is_reading
    two.abort()
    assert both.near.is_reading


def test_the_end_of_the_connection_ends_every_stream() -> None:
    both = ConnectedPair()
    stream, kept = both.client.new_stream({"streamtype": "a"}), StoringReceiver()
    stream.attach(kept)
    both.server.finish()
    assert kept.is_over


def test_pings_of_the_peer_are_answered() -> None:
    both = ConnectedPair()
    kept = StoringReceiver()
    both.near.receiver = kept
    both.near.write(control_frame(PING, 1) + control_frame(PING, 2))
    assert kept.data == control_frame(PING, 1)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x80\x02\0\x01\0\0\0\x04\0\0\0\x01",
        b"\x80\x03\0\x01\0\0\0\x01\0",
        b"\0\0\0\x01\0\xff\xff\xff",
        control_frame(SYN_STREAM, 1, bytes(6) + b"no zlib"),
        control_frame(SYN_STREAM, 2, bytes(6) + HeaderWriter().write({})),
        control_frame(SYN_STREAM, 1, bytes(6) + HeaderWriter().write({"a": "b" * 100_000})),
    ],
)
def test_invalid_input_closes_the_connection(sent: bytes) -> None:
    both = ConnectedPair()
    both.near.write(sent)
    assert both.far.is_closed


def test_headers_keep_their_compression_state() -> None:
    writer, reader = HeaderWriter(), HeaderReader()
    for number in range(3):
        headers = {"Port": str(number), "streamtype": "data"}
        assert reader.read(writer.write(headers)) == {"port": str(number), "streamtype": "data"}
    with pytest.raises(SpdyError, match="not valid"):
        reader.read(b"\xff\xff\xff")


def test_frames_can_arrive_in_pieces() -> None:
    held, found = bytearray(), []
    for each in control_frame(PING, 7) * 2:
        held.append(each)
        found += list(read_frames(held))
    assert [(each.kind, each.number) for each in found] == [(PING, 7)] * 2

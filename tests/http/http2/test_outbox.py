"""Tests of outgoing data: the data is sent in order, with few writes."""

from __future__ import annotations

import asyncio

import pytest

from ctrlmgr.http.http2.outbox import Outbox
from ctrlmgr.http.response_stream import ONE_WRITE
from tests.http.loopback import Loop


class WrittenPieces(list[bytes]):
    def __init__(self) -> None:
        super().__init__()
        self.loop = Loop()
        loop: asyncio.AbstractEventLoop = self.loop  # type: ignore[assignment]  # as much of one as is needed
        self.outbox = Outbox(loop, self.append)


@pytest.fixture
def written() -> WrittenPieces:
    return WrittenPieces()


def test_output_of_one_turn_is_written_at_its_end(written: WrittenPieces) -> None:
    for number in range(10):
        written.outbox.send(b"%d" % number, b",")
    assert (written, len(written.loop.soon)) == ([], 1)
    written.loop.run()
    assert written == [b"0,1,2,3,4,5,6,7,8,9,"]
    written.outbox.send(b"next")
    written.loop.run()
    assert written[1:] == [b"next"]


def test_a_held_outbox_writes_only_at_flush(written: WrittenPieces) -> None:
    written.outbox.hold()
    written.outbox.send(b"a")
    assert (written, written.loop.soon) == ([], [])
    written.outbox.flush()
    assert written == [b"a"]
    written.outbox.flush()
    assert written == [b"a"]


def test_large_output_is_written_in_several_writes(written: WrittenPieces) -> None:
    written.outbox.hold()
    for _ in range(5):
        written.outbox.send(b"a" * (ONE_WRITE // 2))
    assert list(map(len, written)) == [ONE_WRITE] * 2
    written.outbox.flush()
    assert list(map(len, written)) == [ONE_WRITE] * 2 + [ONE_WRITE // 2]


def test_a_closed_outbox_writes_nothing(written: WrittenPieces) -> None:
    written.outbox.send(b"a")
    written.outbox.close()
    written.outbox.send(b"b")
    written.loop.run()
    assert written == []

"""Watches are held, delayed, ended and expired."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ctrlmgr.api.resource import PODS, SERVICES
from ctrlmgr.clock import SystemClock
from ctrlmgr.trial.proxy.watch_streams import EXPIRED, WatchStream, WatchStreams
from tests.background import DEADLINE, background

EVENT = b'{"type":"ADDED"}\n'
BOOKMARK = b'{"type":"BOOKMARK","object":{}}\n'
END_OF_INITIAL_EVENTS = b'{"type":"BOOKMARK","object":{"k8s.io/initial-events-end":"true"}}\n'


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def watches() -> WatchStreams:
    return WatchStreams(clock=SystemClock())


@pytest.fixture
def stream(watches: WatchStreams, pair: tuple[socket.socket, socket.socket]) -> WatchStream:
    stream = WatchStream(PODS, pair[0])
    watches.opened(stream)
    return stream


def test_events_pass_at_once(watches: WatchStreams, stream: WatchStream) -> None:
    assert watches.passed(stream, EVENT) == EVENT
    assert watches.resources == {PODS}
    watches.closed(stream)
    assert watches.resources == frozenset()


def test_held_events_are_delivered_after_the_release(watches: WatchStreams, stream: WatchStream) -> None:
    watches.hold()
    passed = background(lambda: watches.passed(stream, EVENT))
    with pytest.raises(TimeoutError):
        passed.result(0.1)
    watches.release()
    assert passed.result(DEADLINE) == EVENT


def test_a_hold_ends_by_itself(watches: WatchStreams, stream: WatchStream) -> None:
    clock = SystemClock()
    began = clock.monotonic()
    watches.hold(0.2)
    assert watches.passed(stream, EVENT) == EVENT
    assert clock.monotonic() - began >= 0.2


def test_events_of_one_resource_are_late(watches: WatchStreams, stream: WatchStream) -> None:
    clock = SystemClock()
    watches.delays[PODS] = 0.2
    watches.delays[SERVICES] = 60.0
    began = clock.monotonic()
    assert watches.passed(stream, EVENT) == EVENT
    assert 0.2 <= clock.monotonic() - began < 60.0


def test_only_bookmarks_that_servers_may_omit_are_dropped(watches: WatchStreams, stream: WatchStream) -> None:
    watches.drops_bookmarks = True
    assert watches.passed(stream, EVENT + BOOKMARK + END_OF_INITIAL_EVENTS) == EVENT + END_OF_INITIAL_EVENTS


@pytest.mark.parametrize(("is_expired", "last_words"), [(False, b""), (True, EXPIRED)])
def test_ended_watches_get_no_more_events(
    watches: WatchStreams,
    stream: WatchStream,
    pair: tuple[socket.socket, socket.socket],
    is_expired: bool,
    last_words: bytes,
) -> None:
    watches.hold()
    passed = background(lambda: watches.passed(stream, EVENT))
    (watches.expire if is_expired else watches.end)()
    assert passed.result(DEADLINE) == b""
    assert stream.last_words == last_words
    assert pair[0].recv(1) == b""  # the thread that reads events from the server wakes up
    assert watches.resources == frozenset()

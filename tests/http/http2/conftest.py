"""Fixtures with a connection for each test; after the test, the server may hold no state of the connection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ctrlmgr.http.size_limits import DEFAULT
from tests.http.http2.loopback import Http2Client


@pytest.fixture
def client() -> Iterator[Http2Client]:
    client = Http2Client()
    yield client
    client.connection.connection_lost(None)
    assert not client.context.connections
    assert all(timer.cancelled or timer.when <= client.loop.now + DEFAULT.linger for timer in client.loop.timers)

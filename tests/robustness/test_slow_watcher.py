"""Tests of a watcher that stops reading: the server closes its connection, the watcher costs little memory, and other
watchers are not affected.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
import uvloop
from h2.events import StreamReset

from tests.http.http2.caller import Caller
from tests.robustness.histories.history import Delivery, Selection, Watch
from tests.robustness.histories.history_cluster import HistoryCluster
from tests.robustness.histories.run import server_of
from tests.robustness.histories.watchers import follow
from tests.robustness.places import on_sqlite
from tests.robustness.serving import ConfiguredServer
from tests.robustness.wire import Connection, path_of

_EVENTS = 150
_SIZE = 100_000
"""The number of characters in each event; all events together exceed the buffers of any socket."""

_OTHERS = 5
_TERMINATED = "apiserver_terminated_watchers_total"
_MOST_MEMORY = 48 * 1024 * 1024
"""Maximum number of bytes by which the server's memory may grow: twice the size of the cached events (15 MB), and a
margin.
"""

_PATH = path_of("configmaps", "slow")


async def stalled(served: ConfiguredServer) -> asyncio.StreamWriter:
    """Begin a watch on a connection with small buffers, and read only the beginning of the response."""
    site = served.site
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, (site.host, site.port))
    reader, writer = await asyncio.open_connection(sock=plain, ssl=site.trust, server_hostname=site.host, limit=4096)
    writer.write(f"GET {_PATH}?watch=true HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {site.token}\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    return writer


async def write(connection: Connection, world: HistoryCluster) -> list[int]:
    """Change an object repeatedly; return the time at which each change was acknowledged."""
    moments: list[int] = []
    for number in range(_EVENTS):
        body = {"data": {"number": str(number), "padding": "x" * _SIZE}}
        answer = await connection.request("PATCH", f"{_PATH}/big", body, content_type="application/merge-patch+json")
        assert answer.code == 200, answer
        moments.append(world.now())
    return moments


async def terminated(connection: Connection) -> float:
    text = (await connection.request("GET", "/metrics")).body.decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(_TERMINATED + "{"))


async def observe(served: ConfiguredServer) -> tuple[list[int], list[Watch]]:
    world = HistoryCluster([served], 0)
    watches = [
        Watch(server=0, resource="configmaps", selection=Selection("slow"), version="0", called=0)
        for _ in range(_OTHERS)
    ]
    connection = Connection(served.site)
    async with asyncio.TaskGroup() as watching:
        for watch in watches:
            watching.create_task(follow(world, watch, None))
        writer = await stalled(served)
        moments = await write(connection, world)
        while not await over(connection, watches):  # noqa: ASYNC110  # another process tells us of nothing
            await asyncio.sleep(0.05)
        world.ended.set()
        writer.transport.abort()
    connection.close()
    return moments, watches


async def over(connection: Connection, watches: Sequence[Watch]) -> bool:
    """Return whether the server has disconnected one watcher, and all other watchers have received all events."""
    return await terminated(connection) >= 1 and all(len(modifications(watch)) >= _EVENTS for watch in watches)


def modifications(watch: Watch) -> Sequence[Delivery]:
    return [each for each in watch.deliveries if each.type == "MODIFIED"]


def prepared(served: ConfiguredServer) -> int:
    """Create the object that the watchers watch, and return the memory of the server in bytes."""
    for path, name in (("/api/v1/namespaces", "slow"), (_PATH, "big")):
        assert served.request("POST", path, {"metadata": {"name": name}})[0] == 201
    return served.resident()


@pytest.mark.slow
def test_a_slow_reader_is_disconnected_without_affecting_others(tmp_path: Path) -> None:
    served = server_of(on_sqlite(tmp_path))
    try:
        served.start()
        before = prepared(served)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            moments, watches = runner.run(asyncio.wait_for(observe(served), 60))
        assert served.resident() - before < _MOST_MEMORY
        served.stop()
    finally:
        served.close()
    for watch in watches:
        revisions = [each.revision for each in modifications(watch)]
        assert revisions == sorted(set(revisions))
        late = max(each.at - moment for each, moment in zip(modifications(watch), moments, strict=True))
        assert late < 2_000_000_000, f"an event was told {late / 1e9:.2f} s after it was acknowledged"


@pytest.mark.slow
def test_an_unread_stream_is_reset_and_others_continue(tmp_path: Path) -> None:
    served = server_of(on_sqlite(tmp_path))
    try:
        served.start()
        before = prepared(served)
        site = served.site
        caller = Caller((site.host, site.port), site.trust, ("authorization", f"Bearer {site.token}"))
        slow, quick = (caller.ask(f"{_PATH}?watch=true&resourceVersion=0", method="GET") for _ in range(2))
        caller.h2.end_stream(slow)
        caller.h2.end_stream(quick)
        caller.unread.add(slow)
        patch = ("content-type", "application/merge-patch+json")
        for number in range(_EVENTS):
            stream = caller.ask(f"{_PATH}/big", patch, method="PATCH")
            caller.upload(stream, b'{"data":{"number":"%d","padding":"%b"}}' % (number, b"x" * _SIZE))
            caller.h2.end_stream(stream)
            caller.answer(stream)
        last = b'"number":"%d"' % (_EVENTS - 1)
        while last not in caller.bodies[quick][-2 * _SIZE :] or not is_cut_off(caller, slow):
            caller.receive()
        assert caller.bodies[quick].count(b'"type":"MODIFIED"') == _EVENTS
        assert caller.bodies[slow].count(b'"type":"MODIFIED"') < _EVENTS
        assert not is_cut_off(caller, quick)
        assert served.resident() - before < _MOST_MEMORY
        caller.close()
        served.stop()
    finally:
        served.close()


def is_cut_off(caller: Caller, stream: int) -> bool:
    return any(isinstance(event, StreamReset) and event.stream_id == stream for event in caller.events)

"""Tests of concurrent appends that change the same object: they are combined if possible, and otherwise made one after
the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.engine.deferred_proposals import DeferredProposals
from ctrlmgr.engine.operations import Append
from ctrlmgr.engine.strategy import View
from ctrlmgr.errors import AlreadyExists, Conflict, Forbidden
from ctrlmgr.eventlog import Author, Cause, Fence
from ctrlmgr.eventlog.event import Event, EventType, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.server.append_serializer import AppendSerializer
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_namespace

ALICE, BOB = Author("alice", "test"), Author("bob", "test")
COUNTERS = Resource("", "configmaps")


def counter(count: int) -> Object:
    metadata = {"name": "counter", "namespace": "shop"}
    return Object.from_dict(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"count": str(count)}}
    )


class CounterLog:
    """A log with a counter that may not exceed `most`."""

    def __init__(self, most: int = 1000) -> None:
        self.log = MemoryEventLog(clock=FakeClock(), random=Random(1))
        self.log.append([Proposal(EventType.ADDED, counter(0), 0)], author=ALICE)
        self.most = most
        self.appends: list[int] = []
        self.serializer = AppendSerializer(self, self._submit, self._catch_up)

    def get(self, resource: Resource, key: Key) -> Object | None:
        return self.log.get(resource, key)

    async def _catch_up(self) -> None:
        await asyncio.sleep(0)

    async def _submit(
        self, proposals: Sequence[Proposal], author: Author, cause: Cause | None, fence: Fence | None
    ) -> Sequence[Event]:
        await asyncio.sleep(0)  # so that other appends gather
        self.appends.append(len(proposals))
        return self.log.append(proposals, author=author)

    @property
    def count(self) -> int:
        found = self.get(COUNTERS, Key("shop", "counter"))
        assert found is not None
        return int(found.to_dict()["data"]["count"])

    def raised(self, view: View) -> Sequence[Proposal]:
        found = view.get(COUNTERS, Key("shop", "counter"))
        assert found is not None
        count = int(found.to_dict()["data"]["count"]) + 1
        if count > self.most:
            raise Forbidden("there is no room")
        return [Proposal(EventType.MODIFIED, counter(count), found.revision)]

    async def add(self, name: str, author: Author = ALICE) -> Sequence[Event]:
        own = [Proposal(EventType.ADDED, a_namespace(name), 0)]
        return await self.serializer.append(Append(own, author, [DeferredProposals("shop", self.raised)]), None, None)

    async def add_all(self, *names: str, author: Author = ALICE) -> list[Any]:
        return await asyncio.gather(*(self.add(name, author) for name in names), return_exceptions=True)

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        return self.log.snapshot(resource, namespace=namespace).objects


def test_concurrent_writes_share_appends_and_each_is_counted() -> None:
    shared = CounterLog()
    told = asyncio.run(shared.add_all(*(f"n{number}" for number in range(100))))
    assert [events[0].object.name for events in told] == [f"n{number}" for number in range(100)]
    assert all(len(events) == 1 for events in told)
    assert shared.count == 100
    assert len(shared.appends) < 5


def test_a_conflicting_write_is_refused_alone() -> None:
    shared = CounterLog(most=3)
    told = asyncio.run(shared.add_all(*"abcde"))
    assert [isinstance(each, Forbidden) for each in told] == [False, False, False, True, True]
    assert shared.count == 3


def test_a_write_refused_by_the_log_does_not_affect_the_others() -> None:
    shared = CounterLog()
    shared.log.append([Proposal(EventType.ADDED, a_namespace("b"), 0)], author=ALICE)
    told = asyncio.run(shared.add_all("x", "a", "b", "c"))
    assert [isinstance(each, AlreadyExists) for each in told] == [False, False, True, False]
    assert shared.count == 3


def test_an_append_has_one_author() -> None:
    shared = CounterLog()

    async def both() -> None:
        await asyncio.gather(shared.add("a"), shared.add("b"), shared.add("c", BOB), shared.add("d"))

    asyncio.run(both())
    authors = {event.object.name: event.actor for event in shared.log.events_after(0, limit=100)}
    assert (authors["b"], authors["c"], authors["d"]) == ("alice", "bob", "alice")
    assert shared.count == 4


def test_a_retry_sees_the_write_of_the_faster_process() -> None:
    shared = CounterLog()
    stale = shared.raised(shared)
    shared.log.append(shared.raised(shared), author=BOB)

    async def late() -> None:
        command = Append([], ALICE, [DeferredProposals("shop", lambda view: stale)])
        with pytest.raises(Conflict):
            await shared.serializer.append(command, None, None)

    asyncio.run(late())
    assert shared.count == 1

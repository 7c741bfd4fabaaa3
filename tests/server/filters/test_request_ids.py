"""Tests of the IDs of requests."""

from __future__ import annotations

from random import Random
from uuid import UUID

from ctrlmgr.server.filters.request_ids import RequestIds


def test_each_is_another_uuid() -> None:
    one, other = RequestIds(Random(1)), RequestIds(Random(2))
    names = [ids.new() for ids in (one, other) for _ in range(100)]
    assert len(set(names)) == 200
    assert {UUID(name.decode()).version for name in names} == {4}


def test_the_last_is_followed_by_the_first() -> None:
    class Last(Random):
        def getrandbits(self, count: int) -> int:
            return (1 << count) - 1

    ids = RequestIds(Last())
    assert ids.new().endswith(b"-ffffffffffff")
    assert ids.new().endswith(b"-000000000000")

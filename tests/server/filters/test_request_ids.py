"""Tests of the IDs of requests."""

from __future__ import annotations

from random import Random
from uuid import UUID

from ctrlmgr.server.filters.request_ids import RequestIds


def test_each_id_is_a_unique_uuid() -> None:
    one, other = RequestIds(Random(1)), RequestIds(Random(2))
    names = [ids.new() for ids in (one, other) for _ in range(100)]
    assert len(set(names)) == 200
    assert {UUID(name.decode()).version for name in names} == {4}


def test_the_generator_starts_a_new_block_after_the_last_id() -> None:
    class Last(Random):
        def getrandbits(self, count: int) -> int:
            return (1 << count) - 1

    ids = RequestIds(Last())
    assert ids.new().endswith(b"-ffffffffffff")
    assert ids.new().endswith(b"-000000000000")

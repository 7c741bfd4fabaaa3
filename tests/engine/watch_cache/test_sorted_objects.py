from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.api.object import Object
from ctrlmgr.engine.watch_cache import sorted_objects
from ctrlmgr.engine.watch_cache.sorted_objects import SortedObjects
from ctrlmgr.testing.eventlog_contract import thing

PATHS = st.text("ab/", max_size=4)
SPANS = [("", ""), ("a", ""), ("", "b"), ("a/", "a0"), ("b", "a"), ("aa", "ab")]


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_objects, "BLOCK", 2)
        yield


@given(st.sets(PATHS), st.lists(st.tuples(st.booleans(), PATHS)))
def test_the_list_equals_a_sorted_one(beginning: set[str], steps: list[tuple[bool, str]]) -> None:
    expected: dict[str, Object] = {path: thing(path) for path in beginning}
    objects = SortedObjects(sorted(expected.items()))
    for put, path in steps:
        if put:
            expected[path] = thing(path, spec=len(expected))
            objects.put(path, expected[path])
        elif path in expected:
            del expected[path]
            objects.remove(path)
        assert (path in objects) == (path in expected)
    assert len(objects) == len(expected)
    for start, end in SPANS:
        found = [(path, expected[path]) for path in sorted(expected) if start <= path and (not end or path < end)]
        assert list(objects.items(start, end)) == found
        assert objects.list(start, end) == [obj for _, obj in found]
        assert objects.count(start, end) == len(found)


def test_a_returned_list_belongs_to_the_caller() -> None:
    objects = SortedObjects([("a", thing("a"))])
    objects.list("", "").clear()
    assert len(objects.list("", "")) == 1
    assert 1 not in objects

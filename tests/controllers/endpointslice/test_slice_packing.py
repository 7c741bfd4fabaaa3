"""Tests of the division of endpoints into slices: no slice is too large, each endpoint is in exactly one slice, and few
writes are needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.discovery import Endpoint, EndpointConditions, EndpointHints, EndpointPort, EndpointSlice, ForZone
from ctrlmgr.api.object import Object
from ctrlmgr.controllers import endpointslice
from ctrlmgr.controllers.endpointslice.endpoint_groups import Identity, identity
from ctrlmgr.controllers.endpointslice.slice_packing import Changes, Draft, is_same, pack, recycle

PORTS = [EndpointPort("http", "TCP", 80)]
READY = EndpointConditions(ready=True, serving=True, terminating=False)
NOT_READY = EndpointConditions(ready=False, serving=False, terminating=False)

MAX_ENDPOINTS = endpointslice.Options().max_endpoints_per_slice


def endpoint(number: int, conditions: EndpointConditions = READY) -> Endpoint:
    return Endpoint([f"10.0.{number // 250}.{number % 250}"], conditions)


def wanted(endpoints: Iterable[Endpoint]) -> dict[Identity, Endpoint]:
    return {identity(each): each for each in endpoints}


def a_slice(name: str, numbers: Iterable[int]) -> Object:
    fields = {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "addressType": "IPv4",
        "endpoints": msgspec.to_builtins([endpoint(number) for number in numbers]),
        "ports": msgspec.to_builtins(PORTS),
    }
    return Object.from_dict(fields).at(1)


def packed(
    existing: Sequence[Iterable[int]],
    endpoints: Iterable[Endpoint],
    *,
    labelled: bool | set[str] = True,
) -> Changes:
    """Divide endpoints among slices named a, b, c, …; all slices, or only the named slices, have correct labels."""
    slices = [a_slice(chr(ord("a") + at), numbers) for at, numbers in enumerate(existing)]

    def is_labelled(draft: Draft) -> bool:
        return labelled if isinstance(labelled, bool) else outlined(draft)[0] in labelled

    return pack(map(Draft.of, slices), wanted(endpoints), lambda: Draft("IPv4", PORTS, []), is_labelled, MAX_ENDPOINTS)


def outline(changes: Changes) -> dict[str, list[tuple[str, int]]]:
    """Return the written slices with their new number of endpoints; deleted slices have their old number."""
    actions = {"create": changes.create, "update": changes.update, "delete": changes.delete}
    return {action: [outlined(draft) for draft in drafts] for action, drafts in actions.items() if drafts}


def outlined(draft: Draft) -> tuple[str, int]:
    return draft.current.name if draft.current else "new", len(draft.endpoints)


@pytest.mark.parametrize(
    ("existing", "endpoints", "expected"),
    [
        pytest.param([], range(0), {}, id="nothing wanted, nothing there"),
        pytest.param([], range(5), {"create": [("new", 5)]}, id="a new slice"),
        pytest.param(
            [], range(250), {"create": [("new", 100), ("new", 100), ("new", 50)]}, id="as many new slices as it takes"
        ),
        pytest.param([range(5)], range(5), {}, id="all is there"),
        pytest.param([range(5)], range(6), {"update": [("a", 6)]}, id="one more goes into the slice there is"),
        pytest.param([range(5)], range(4), {"update": [("a", 4)]}, id="one less"),
        pytest.param([range(5)], range(0), {"delete": [("a", 5)]}, id="all gone"),
        pytest.param([range(100)], range(101), {"create": [("new", 1)]}, id="a full slice stays as it is"),
        pytest.param(
            [range(50), range(50, 130)],
            range(140),
            {"update": [("b", 90)]},
            id="into the one that comes closest to full by it",
        ),
        pytest.param([range(50), range(50, 130)], range(150), {"update": [("b", 100)]}, id="also if that fills it up"),
        pytest.param(
            [range(50), range(50, 130)], range(151), {"update": [("a", 71)]}, id="not into one where it does not fit"
        ),
        pytest.param(
            [range(50), range(50, 130)],
            range(190),
            {"create": [("new", 60)]},
            id="into a new one rather than into two",
        ),
        pytest.param(
            [range(50), range(50, 130)],
            range(235),
            {"create": [("new", 100)], "update": [("b", 85)]},
            id="full slices first, then the rest where it fits",
        ),
        pytest.param(
            [range(80), range(80, 130)],
            [*range(1, 80), *range(81, 130), *range(200, 225)],
            {"update": [("a", 100), ("b", 53)]},
            id="into slices that are written anyway, the fullest first",
        ),
        pytest.param(
            [range(80), range(80, 130)],
            [*range(80), *range(81, 130), *range(200, 240)],
            {"update": [("b", 89)]},
            id="and only into those while there is room",
        ),
        pytest.param(
            [range(60), range(60, 120)],
            [*range(10), *range(60, 70)],
            {"update": [("a", 10), ("b", 10)]},
            id="slices are not evened out",
        ),
        pytest.param([range(5), range(3, 8)], range(8), {"update": [("b", 3)]}, id="what is there twice is taken out"),
    ],
)
def test_packed_slices(
    existing: list[Iterable[int]], endpoints: Iterable[int], expected: dict[str, list[tuple[str, int]]]
) -> None:
    assert outline(packed(existing, map(endpoint, endpoints))) == expected


def test_a_changed_endpoint_stays_in_its_slice() -> None:
    changes = packed([range(3), range(3, 6)], [endpoint(0), endpoint(1, NOT_READY), *map(endpoint, range(2, 6))])
    [draft] = changes.update
    assert draft.endpoints == [endpoint(0), endpoint(1, NOT_READY), endpoint(2)]
    assert [*map(outlined, changes.unchanged)] == [("b", 3)]


def test_changed_labels_alone_cause_a_write() -> None:
    changes = packed([range(3), range(3, 6)], map(endpoint, range(6)), labelled={"b"})
    assert outline(changes) == {"update": [("a", 3)]}
    assert [draft.relabel for draft in changes.update] == [True]


def test_a_slice_with_changed_labels_gets_new_endpoints() -> None:
    changes = packed([range(3), range(3, 9)], map(endpoint, range(10)), labelled={"b"})
    assert outline(changes) == {"update": [("a", 4)]}


def test_slices_of_the_cache_are_not_mutated() -> None:
    there = a_slice("a", range(3))
    before = list(there.view(EndpointSlice).endpoints or ())
    pack(
        [Draft.of(there)],
        wanted(map(endpoint, range(2, 9))),
        lambda: Draft("IPv4", PORTS, []),
        lambda _: False,
        MAX_ENDPOINTS,
    )
    assert there.view(EndpointSlice).endpoints == before


@pytest.mark.parametrize(
    ("existing", "same"),
    [
        pytest.param(endpoint(1), True, id="equal"),
        pytest.param(endpoint(1, NOT_READY), False, id="other conditions"),
        pytest.param(msgspec.structs.replace(endpoint(1), zone="z"), False, id="another zone"),
        pytest.param(msgspec.structs.replace(endpoint(1), node_name="n"), False, id="another node"),
        pytest.param(
            msgspec.structs.replace(endpoint(1), target_ref=ObjectReference("Pod")), False, id="another target"
        ),
        pytest.param(
            msgspec.structs.replace(endpoint(1), hints=EndpointHints([ForZone("z")])), True, id="hints do not count"
        ),
    ],
)
def test_equal_endpoints_are_recognized(existing: Endpoint, same: bool) -> None:
    assert is_same(endpoint(1), existing) is same


def test_the_version_of_a_target_is_ignored() -> None:
    first, second = (
        msgspec.structs.replace(endpoint(1), target_ref=ObjectReference("Pod", uid="u", resource_version=version))
        for version in ("1", "")
    )
    assert is_same(first, second)


def drafts(*named: str) -> list[Draft]:
    return [Draft("IPv4", PORTS, [], a_slice(name, ())) for name in named]


@pytest.mark.parametrize(
    ("new", "gone", "expected"),
    [
        pytest.param(1, "a", {"update": [("a", 0)]}, id="one for one"),
        pytest.param(2, "a", {"create": [("new", 0)], "update": [("a", 0)]}, id="more to create"),
        pytest.param(1, "ab", {"update": [("a", 0)], "delete": [("b", 0)]}, id="more to delete"),
        pytest.param(1, "xa", {"update": [("a", 0)], "delete": [("x", 0)]}, id="what may not stay is deleted"),
        pytest.param(0, "a", {"delete": [("a", 0)]}, id="nothing to create"),
    ],
)
def test_recycling(new: int, gone: str, expected: dict[str, list[tuple[str, int]]]) -> None:
    changes = Changes(create=[Draft("IPv4", PORTS, []) for _ in range(new)], delete=drafts(*gone))
    recycle(changes, lambda draft: outlined(draft)[0] != "x")
    assert outline(changes) == expected
    assert all(draft.renew for draft in changes.update)


def ranges(most: int, *, at_most: int) -> st.SearchStrategy[list[range]]:
    """Return a Hypothesis strategy for up to `most` ranges, each at most `at_most` long."""
    return st.lists(
        st.builds(lambda start, length: range(start, start + length), numbers, st.integers(0, at_most)), max_size=most
    )


numbers = st.integers(0, 400)
slices_there = ranges(5, at_most=MAX_ENDPOINTS)
numbers_wanted = ranges(3, at_most=250)


def after(changes: Changes) -> list[list[Endpoint]]:
    """Return the content of the slices after the changes."""
    return [draft.endpoints for draft in changes]


@settings(max_examples=60, deadline=None)
@given(slices_there, numbers_wanted)
def test_every_endpoint_is_in_one_slice_within_the_maximum(existing: list[range], asked: list[range]) -> None:
    endpoints = [endpoint(number) for number in sorted(set().union(*asked))]
    changes = packed(existing, endpoints)
    contents = after(changes)
    assert all(0 < len(content) <= MAX_ENDPOINTS for content in contents[: len(changes.create) + len(changes.update)])
    assert sorted(map(str, chain(*contents))) == sorted(map(str, endpoints))
    assert all(draft.differs for draft in changes.create + changes.update)


@settings(max_examples=40, deadline=None)
@given(slices_there, numbers_wanted)
def test_packing_again_changes_nothing(existing: list[range], asked: list[range]) -> None:
    endpoints = [endpoint(number) for number in sorted(set().union(*asked))]
    changes = packed(existing, endpoints)
    again = pack(changes, wanted(endpoints), lambda: Draft("IPv4", PORTS, []), lambda _: True, MAX_ENDPOINTS)
    assert outline(again) == {}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 700), st.sets(numbers, max_size=8), st.sets(numbers, max_size=8), st.integers(0, 30))
def test_writes_are_as_few_as_possible(count: int, gone: set[int], changed: set[int], new: int) -> None:
    slices = [range(start, min(start + MAX_ENDPOINTS, count)) for start in range(0, count, MAX_ENDPOINTS)]
    gone, changed = {n for n in gone if n < count}, {n for n in changed if n < count}
    kept = [endpoint(n, NOT_READY if n in changed else READY) for n in range(count) if n not in gone]
    changes = packed(slices, [*kept, *map(endpoint, range(count, count + new))])
    touched = {n // MAX_ENDPOINTS for n in gone | changed}
    written = len(changes.create) + len(changes.update) + len(changes.delete)
    assert written <= len(touched) + math.ceil(new / MAX_ENDPOINTS)
    assert len(changes.update) + len(changes.delete) >= len(touched)


def test_a_rolling_update_writes_one_slice_per_pod() -> None:
    slices = [range(start, start + MAX_ENDPOINTS) for start in range(0, 1000, MAX_ENDPOINTS)]
    for number in (0, 250, 999):
        asked = [endpoint(n) for n in range(1001) if n != number]
        assert len(packed(slices, asked).update) == 1
        assert not packed(slices, asked).create

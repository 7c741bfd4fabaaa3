"""Tests that each evaluation of an expression is charged for its work, and that the work is bounded."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.expressions.library import list_functions, sets
from ctrlmgr.expressions.value_keys import keys_of
from ctrlmgr.expressions.values import CostExceeded, MapList, Optional, StructValue, Timestamp, UInt, entry, equal
from ctrlmgr.work_budget import TooMuchWork, bounded, spend
from tests.expressions.stage import VALUES, compiled

MANY = list(range(20_000))


def evaluated(source: str, **given: Any) -> Any:
    return compiled(source).evaluate({**VALUES, **given})[0]


@pytest.mark.parametrize(
    "source",
    [
        "sets.intersects(object.a, object.b)",
        "sets.contains(object.a, object.b)",
        "sets.equivalent(object.a, object.b)",
        "object.a.distinct()",
    ],
)
def test_an_unaffordable_call_is_not_started(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(items: Any) -> None:
        raise AssertionError("it was begun")

    monkeypatch.setattr(sets, "keys_of", begun)
    monkeypatch.setattr(list_functions, "keys_of", begun)
    with pytest.raises(CostExceeded):
        evaluated(source, object={"a": MANY, "b": [-each for each in MANY]})


def test_sets_of_values_are_looked_up_by_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(one: Any, other: Any) -> bool:
        raise AssertionError("two elements were compared")

    monkeypatch.setattr(sets, "equal", compared)
    monkeypatch.setattr(list_functions, "equal", compared)
    two = {"a": [{"n": at, "l": [at]} for at in range(500)], "b": [{"n": 1.0 * at, "l": [at]} for at in range(500)]}
    assert evaluated("sets.equivalent(object.a, object.b) && sets.contains(object.a, object.b)", object=two)
    assert evaluated("sets.intersects(object.a, object.b) && object.a.distinct().size() == 500", object=two)


SCALARS = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        UInt(1),
        1.0,
        1.5,
        math.nan,
        "",
        "1",
        b"1",
        2**63 - 1,
        2.0**63,
        Timestamp(1),
        Optional(False),
    ]
)
CEL = st.recursive(
    SCALARS,
    lambda below: st.one_of(
        st.lists(below, max_size=2),
        st.dictionaries(st.sampled_from(["a", "b"]), below, max_size=2),
        st.builds(Optional, st.just(True), below),
        st.builds(StructValue, st.sampled_from(["A", "B"]), st.dictionaries(st.just("f"), below, max_size=1)),
    ),
    max_leaves=4,
)


@given(CEL, CEL)
def test_values_have_equal_keys_exactly_if_they_are_equal(one: Any, other: Any) -> None:
    keys = keys_of([one, other])
    assert keys is not None
    assert (keys[0] == keys[1]) == equal(one, other)


@given(st.lists(CEL, max_size=6))
def test_distinct_keeps_the_first_of_equal_elements(items: list[Any]) -> None:
    found: list[Any] = []
    for each in items:
        if not any(equal(each, known) for known in found):
            found.append(each)
    made = evaluated("object.distinct()", object=items)
    assert list(map(id, made)) == list(map(id, found))


def test_lists_without_order_have_no_key_and_are_compared() -> None:
    one, same = MapList([{"k": 1}, {"k": 2}], ("k",)), MapList([{"k": 2}, {"k": 1}], ("k",))
    assert keys_of([one]) is None
    assert evaluated("object.distinct()", object=[one, same]) == [one]


@pytest.mark.parametrize(
    "source",
    [
        "object.all(x, (object + object).size() > 0)",  # joining copies
        "object.all(x, [[object]] == [[other]])",  # a list with one deeply nested element
        "s.replace('', s).size() > 0",
        "s.findAll('(?:a.*z)|a').size() > 0",
        "s.matches('^(a|b)*a(a|b){999}$')",
        "[s, s, s, s, s, s, s, s].all(x, '%s%s%s%s%s'.format([s + s, s + s, s + s, s + s, s + s]) != '')",
    ],
)
def test_uncharged_work_of_an_evaluation_is_bounded(source: str) -> None:
    given = {"object": MANY, "other": MANY[:], "s": "ab" * 200_000}
    with pytest.raises(CostExceeded):
        evaluated(source.replace("other", "object.map(x, x)"), **given)


def test_a_loop_appends_to_its_result_without_copies() -> None:
    assert evaluated("object.map(x, x).size() == 20000 && object.filter(x, x > 1) != []", object=MANY)
    nested = "[1, 2].map(x, [3, 4].map(y, x * y)) == [[3, 4], [6, 8]] && [1].map(x, x) + [2] == [1, 2]"
    assert evaluated(nested) is True
    assert evaluated(nested) is True  # the first evaluation leaves no state


class CountingKey(int):
    """A dictionary key that counts its comparisons."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountingKey.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_the_keys_0_and_1_are_found_without_reading_the_others() -> None:
    assert entry({CountingKey(at): at for at in range(1000)}, 1) == (True, 1)
    assert CountingKey.compared <= 4
    assert entry({True: "a"}, 1) == (False, None)
    assert entry({1: "a"}, UInt(1)) == (True, "a")


def test_a_budget_is_drawn_from_the_enclosing_one() -> None:
    with bounded(10):
        spend(5)
        with pytest.raises(TooMuchWork), bounded(1):
            spend(2)
        with pytest.raises(TooMuchWork), bounded(100):
            spend(4)
        with pytest.raises(TooMuchWork):
            spend(1)
    spend(10**9)  # without a budget, steps are not counted

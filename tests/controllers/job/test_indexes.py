"""Tests of completion indexes: their compressed form, how it is parsed, and their allocation, lowest index first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.job.indexes import INDEX, Intervals, completion_index, superfluous
from ctrlmgr.controllers.job.view import JobPod

INDEXES = st.sets(st.integers(0, 60))


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([3, 4], "3,4"),
        ([3, 4, 5], "3-5"),
        ([0, 1, 3, 5, 6, 7, 9], "0,1,3,5-7,9"),
    ],
)
def test_indexes_are_formatted_as_intervals(indexes: list[int], text: str) -> None:
    assert str(Intervals.of(indexes)) == text
    assert Intervals.parse(text, 100) == Intervals.of(indexes)


@pytest.mark.parametrize(
    ("text", "completions", "expected"),
    [
        ("0-5", 3, "0-2"),
        ("1,7,8", 7, "1"),
        ("x,2,3-y,4", 10, "2,4"),
        ("1,2,3", 10, "1-3"),
    ],
)
def test_invalid_or_too_high_indexes_are_dropped(text: str, completions: int, expected: str) -> None:
    assert str(Intervals.parse(text, completions)) == expected


@given(INDEXES, INDEXES)
def test_intervals_are_sets(one: set[int], other: set[int]) -> None:
    both = Intervals.of(one).merge(Intervals.of(other))
    assert both == Intervals.of(one | other) == Intervals.parse(str(both), 1000)
    assert both.total == len(one | other)
    assert [index for index in range(70) if both.has(index)] == sorted(one | other)
    assert [*both.gaps(50)] == sorted(set(range(50)) - one - other)


@pytest.mark.parametrize(("text", "index"), [("0", 0), ("12", 12), ("-1", None), ("1.5", None), ("", None)])
def test_the_index_of_a_pod_is_in_an_annotation(text: str, index: int | None) -> None:
    assert completion_index({INDEX: text}) == index


def _pod(name: str, index: str | None, phase: str = "Pending") -> JobPod:
    annotations = {} if index is None else {INDEX: index}
    metadata = {"name": name, "namespace": "a", "annotations": annotations}
    return JobPod(
        Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "status": {"phase": phase}})
    )


def test_of_several_pods_with_one_index_the_most_advanced_is_kept() -> None:
    pods = [
        _pod("waiting", "1"),
        _pod("running", "1", "Running"),
        _pod("alone", "0"),
        _pod("beyond", "5"),
        _pod("nameless", None),
    ]
    gone, left = superfluous(pods, 5)
    assert sorted(pod.name for pod in gone) == ["beyond", "nameless", "waiting"]
    assert [pod.name for pod in left] == ["alone", "running"]

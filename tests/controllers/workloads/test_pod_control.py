from __future__ import annotations

import pytest

from ctrlmgr.controllers.workloads.int_or_percent import Fenceposts, fenceposts, scaled
from ctrlmgr.controllers.workloads.pod_control import in_batches, name_prefix, slow_start
from ctrlmgr.errors import Fenced, Forbidden


@pytest.mark.parametrize(
    ("count", "batches"),
    [(0, []), (1, [1]), (2, [1, 1]), (7, [1, 2, 4]), (10, [1, 2, 4, 3]), (500, [1, 2, 4, 8, 16, 32, 64, 128, 245])],
)
def test_a_slow_start_doubles(count: int, batches: list[int]) -> None:
    assert [*slow_start(count)] == batches


def test_no_batch_follows_a_failed_batch() -> None:
    done: list[int] = []

    def act(number: int) -> None:
        done.append(number)
        if number == 3:
            raise Forbidden("enough")

    succeeded, failure = in_batches(20, act)
    assert done == [0, 1, 2, 3, 4, 5, 6]  # batches of 1, 2, 4; the last batch is completed
    assert succeeded == 6
    assert str(failure) == "enough"


def test_a_too_long_name_gets_no_hyphen() -> None:
    assert name_prefix("web") == "web-"
    assert name_prefix("w" * 254) == "w" * 254


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [(3, 10, 3, 3), ("25%", 10, 3, 2), ("0%", 10, 0, 0), ("100%", 7, 7, 7), ("33%", 1, 1, 0), (None, 5, 0, 0)],
)
def test_percentages_are_rounded_up_or_down(value: int | str | None, total: int, up: int, down: int) -> None:
    assert scaled(value, total, round_up=True) == up
    assert scaled(value, total, round_up=False) == down


def test_an_invalid_percentage_is_refused() -> None:
    with pytest.raises(ValueError, match="not a percentage"):
        scaled("5", 10, round_up=True)


@pytest.mark.parametrize(
    ("surge", "unavailable", "desired", "posts"),
    [
        ("25%", "25%", 10, Fenceposts(3, 2)),
        ("25%", "25%", 1, Fenceposts(1, 0)),
        (0, "25%", 1, Fenceposts(0, 1)),
        (0, "0%", 5, Fenceposts(0, 1)),
        (2, 0, 5, Fenceposts(2, 0)),
    ],
)
def test_max_surge_and_max_unavailable_are_never_both_zero(
    surge: int | str, unavailable: int | str, desired: int, posts: Fenceposts
) -> None:
    assert fenceposts(surge, unavailable, desired) == posts


@pytest.mark.parametrize("at_once", [1, 4])
def test_concurrent_calls_are_made_once_and_stop_after_a_failed_batch(at_once: int) -> None:
    called: list[int] = []

    def act(number: int) -> None:
        called.append(number)
        if number in (5, 6):
            raise Forbidden(str(number))

    succeeded, failure = in_batches(100, act, at_once)
    assert sorted(called) == list(range(7))
    assert (succeeded, str(failure)) == (5, "5")


def test_other_errors_are_raised_from_any_thread() -> None:
    def act(number: int) -> None:
        if number == 2:
            raise Fenced("another leads")

    with pytest.raises(Fenced):
        in_batches(8, act, 4)

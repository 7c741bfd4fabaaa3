"""Tests of the UI page's time axis, on which long pauses are shortened."""

from __future__ import annotations

from ctrlmgr.ui.folding import Folded

HOUR = 3_600_000_000


def test_a_timeline_without_long_pauses_is_unchanged() -> None:
    spans = [(each * HOUR, each * HOUR + 10) for each in range(10)]
    assert Folded.of(spans) == Folded.of([]) == Folded()
    assert Folded().point(5) == 5


def test_long_pauses_are_narrow_and_the_order_is_kept() -> None:
    spans = [(0, HOUR), (100 * HOUR, 101 * HOUR), (101 * HOUR, 102 * HOUR), (900 * HOUR, 901 * HOUR)]
    folded = Folded.of(spans)
    assert [(each.began, each.ended) for each in folded.folds] == [(HOUR, 100 * HOUR), (102 * HOUR, 900 * HOUR)]
    points = [folded.point(each) for span in spans for each in span]
    assert points == sorted(points)
    assert points[-1] < 5 * HOUR
    assert [each["pause"] for each in folded.to_json()] == [99 * HOUR, 798 * HOUR]
    assert [each["at"] for each in folded.to_json()] == [points[2], points[6]]

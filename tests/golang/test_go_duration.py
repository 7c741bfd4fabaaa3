"""Tests of the parser of Go's durations, against values and errors of Go's `time.ParseDuration`."""

from __future__ import annotations

import pytest

from ctrlmgr.golang.go_duration import MalformedDuration, parse_go_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("0", 0), ("1h30m", 5_400_000_000_000), ("-1.5s", -1_500_000_000), (".5ms", 500_000), ("+2us3ns", 2_003)],
)
def test_a_duration_is_parsed(text: str, nanoseconds: int) -> None:
    assert parse_go_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("5", 'time: missing unit in duration "5"'),
        ("1fortnight", 'time: unknown unit "fortnight" in duration "1fortnight"'),
        ("99999999999h", 'time: invalid duration "99999999999h"'),
    ],
)
def test_a_malformed_duration_has_gos_error(text: str, problem: str) -> None:
    with pytest.raises(MalformedDuration) as raised:
        parse_go_duration(text)
    assert str(raised.value) == problem

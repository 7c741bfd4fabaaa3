"""Tests of Go's durations, against values and errors of Go's `time.ParseDuration` and `Duration.String`."""

from __future__ import annotations

import pytest

from ctrlmgr.golang.go_duration import MalformedDuration, parse_go_duration, write_go_duration


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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (2e-9, "2ns"),
        (1.5e-6, "1.5µs"),
        (0.00125, "1.25ms"),
        (0.6, "600ms"),
        (1.0, "1s"),
        (61.25, "1m1.25s"),
        (3600.0, "1h0m0s"),
        (7325.5, "2h2m5.5s"),
    ],
)
def test_a_duration_is_written_as_in_go(seconds: float, text: str) -> None:
    assert write_go_duration(seconds) == text

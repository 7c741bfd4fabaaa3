"""Tests of Go's errors for invalid times."""

from __future__ import annotations

import pytest

from ctrlmgr.golang.go_time import MICROSECONDS, SECONDS, parse_problem

_WORDS = {
    ("x", SECONDS): ' as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
    ("2024", SECONDS): ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "-"',
    ("2024-1-01T00:00:00Z", SECONDS): ' as "2006-01-02T15:04:05Z07:00": cannot parse "1-01T00:00:00Z" as "01"',
    ("2024-01-01 00:00:00Z", SECONDS): ' as "2006-01-02T15:04:05Z07:00": cannot parse " 00:00:00Z" as "T"',
    ("2024-01-01T00:00:00", SECONDS): ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
    ("2024-01-01T00:00:00+0100", SECONDS): ' as "2006-01-02T15:04:05Z07:00": cannot parse "+0100" as "Z07:00"',
    ("2024-13-01T00:00:00Z", SECONDS): ": month out of range",
    ("2024-02-30T00:00:00Z", SECONDS): ": day out of range",
    ("2024-02-00T00:00:00Z", SECONDS): ": day out of range",
    ("2024-01-01T24:00:00Z", SECONDS): ": hour out of range",
    ("2024-01-01T00:60:00Z", SECONDS): ": minute out of range",
    ("2024-01-01T00:00:60Z", SECONDS): ": second out of range",
    ("2024-01-01T00:00:00.5+25:00", SECONDS): ": time zone offset hour out of range",
    ("2024-01-01T00:00:00Zx", SECONDS): ': extra text: "x"',
    ("2024-01-01T00:00:00Z", MICROSECONDS): (' as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'),
    ("2024-13-01T00:00:00Z", MICROSECONDS): ": month out of range",
}


@pytest.mark.parametrize(("text", "layout"), _WORDS)
def test_times_equal_gos_output(text: str, layout: str) -> None:
    assert parse_problem(text, layout) == f'parsing time "{text}"{_WORDS[text, layout]}'


def test_other_characters_are_encoded_as_bytes() -> None:
    assert parse_problem("é", SECONDS).startswith('parsing time "\\xc3\\xa9" as ')

"""Tests that the values of header lines are parsed only once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctrlmgr.authentication.header_lines import HeaderLine, HeaderLines


def test_a_header_is_parsed_once_per_reader() -> None:
    asked: list[str] = []

    def names(lines: Sequence[HeaderLine]) -> list[bytes]:
        asked.append("names")
        return [name for name, _ in lines]

    def count(lines: Sequence[HeaderLine]) -> int:
        asked.append("count")
        return len(lines)

    lines = HeaderLines([(b"accept", b"*/*"), (b"host", b"here")])
    assert [lines.read(names), lines.read(count), lines.read(names)] == [[b"accept", b"host"], 2, [b"accept", b"host"]]
    assert asked == ["names", "count"]
    assert HeaderLines().read(count) == 0, "other lines are read anew"


def test_a_refused_header_is_refused_each_time() -> None:
    def refuse(lines: Sequence[HeaderLine]) -> None:
        raise ValueError(len(lines))

    lines = HeaderLines([(b"a", b"b")])
    for _ in range(2):
        with pytest.raises(ValueError, match="1"):
            lines.read(refuse)

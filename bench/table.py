"""Turns the reports of the benchmarks into a page: `python -m bench.table bench/results >docs/benchmarks.md`.

The folder has a file for each benchmark, `name.txt`, with what it printed; lines that are no claims are left out.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_CLAIM = re.compile(
    r"(?P<name>.+?) +(?P<value>[\d,.]+) (?P<unit>\D+?) +limit +(?P<limit>[\d,.]+) "
    r"ratio +(?P<ratio>[\d.]+)  goal (?P<goal>[<>]= \S+)  (?P<verdict>ok|MISSED)"
)
_INTRODUCTION = """\
# Benchmarks

What `scripts/bench` printed last, on {cores} cores with {python}: each claim against a limit that was measured in the
same run. Trust the ratios; [performance.md](performance.md) says what is behind them.
"""
_HEAD = "| | value | limit | ratio | goal | |\n|---|---|---|---|---|---|"


def page(reports: Iterable[Path]) -> Iterator[str]:
    """Yield the lines of the page for these reports."""
    yield _INTRODUCTION.format(cores=os.cpu_count(), python=f"CPython {platform.python_version()}").rstrip()
    for report in reports:
        yield f"\n## python -m bench.{report.stem}\n\n{_HEAD}"
        yield from filter(None, map(_row, report.read_text().splitlines()))


def _row(line: str) -> str:
    found = _CLAIM.fullmatch(line.strip())
    if found is None:
        return ""
    verdict = "ok" if found["verdict"] == "ok" else "**missed**"
    value, limit = (f"{found[each]} {found['unit']}" for each in ("value", "limit"))
    return f"| {found['name']} | {value} | {limit} | {found['ratio']} | {found['goal']} | {verdict} |"


if __name__ == "__main__":
    print("\n".join(page(sorted(Path(sys.argv[1]).glob("*.txt")))))

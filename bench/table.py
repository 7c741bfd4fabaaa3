"""Turns the reports of the benchmarks into a page: `python -m bench.table bench/results.txt >docs/benchmarks.md`.

A line `# name` begins a benchmark's part, its claims follow as `bench.report` prints them; other lines are left out.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_CLAIM = re.compile(
    r"(?P<name>.+?) +(?P<value>[\d,.]+) (?P<unit>\S+) +limit +(?P<limit>[\d,.]+) "
    r"ratio +(?P<ratio>[\d.]+)  goal (?P<goal>[<>]= \S+)  (?P<verdict>ok|MISSED)"
)
_INTRODUCTION = """\
# Benchmarks

What `scripts/bench` printed last, on {cores} cores with {python}: each claim against a limit that was measured in the
same run. Trust the ratios; [performance.md](performance.md) says what is behind them.
"""
_HEAD = "| | value | limit | ratio | goal | |\n|---|---|---|---|---|---|"


def page(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of the page for the lines of the reports."""
    yield _INTRODUCTION.format(cores=os.cpu_count(), python=f"CPython {platform.python_version()}").rstrip()
    for line in lines:
        if line.startswith("# "):
            yield f"\n## python -m {line[2:].strip()}\n\n{_HEAD}"
        elif found := _CLAIM.fullmatch(line.strip()):
            verdict = "ok" if found["verdict"] == "ok" else "**missed**"
            value, limit = (f"{found[each]} {found['unit']}" for each in ("value", "limit"))
            yield f"| {found['name']} | {value} | {limit} | {found['ratio']} | {found['goal']} | {verdict} |"


if __name__ == "__main__":
    with Path(sys.argv[1]).open() as results:
        print("\n".join(page(results)))

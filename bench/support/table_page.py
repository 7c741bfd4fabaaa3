"""Writes the reports of benchmarks to a page: `python -m bench.support.table_page bench/results docs/benchmarks.md`.

The folder contains the output of each benchmark as `name.txt`; lines that are not claims are ignored. The page keeps
the sections of benchmarks whose output is not in the folder, unless the benchmark no longer exists. Therefore single
benchmarks can be run again without losing the sections of the others.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_BENCH = Path(__file__).parent.parent
_CLAIM = re.compile(
    r"(?P<name>.+?) +(?P<value>[\d,.]+) (?P<unit>\D+?) +limit +(?P<limit>[\d,.]+) "
    r"ratio +(?P<ratio>[\d.]+)  goal (?P<goal>[<>]= \S+)  (?P<verdict>ok|MISSED)"
)
_INTRODUCTION = """\
# Benchmarks

This page is the last output of `scripts/bench`, on {cores} cores with {python}. Each row compares a measured value with
a limit, which is a constant or was measured in the same run, and states the goal for their ratio. Ratios are more
reliable than absolute values; [performance.md](performance.md) describes the method.
"""
_SECTION = re.compile(r"^## python -m bench\.(\w+)\n\n(.*?)\n*(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_HEAD = "| | value | limit | ratio | goal | |\n|---|---|---|---|---|---|"


def page(former: str, reports: Iterable[Path]) -> Iterator[str]:
    """Yield the parts of the new page; the reports replace the sections of the old page, `former`."""
    sections = {name: table for name, table in _SECTION.findall(former) if _exists(name)}
    for report in reports:
        rows = filter(None, map(_row, report.read_text().splitlines()))
        sections[report.stem] = "\n".join([_HEAD, *rows])
    yield _INTRODUCTION.format(cores=os.cpu_count(), python=f"CPython {platform.python_version()}").rstrip()
    for name in sorted(sections):
        yield f"## python -m bench.{name}\n\n{sections[name]}"


def _exists(name: str) -> bool:
    return (_BENCH / f"{name}.py").exists() or (_BENCH / name / "__main__.py").exists()


def _row(line: str) -> str:
    found = _CLAIM.fullmatch(line.strip())
    if found is None:
        return ""
    verdict = "ok" if found["verdict"] == "ok" else "**missed**"
    value, limit = (f"{found[each]} {found['unit']}" for each in ("value", "limit"))
    return f"| {found['name']} | {value} | {limit} | {found['ratio']} | {found['goal']} | {verdict} |"


def main(folder: Path, kept: Path) -> None:
    """Update the page `kept` with the reports in `folder`."""
    former = kept.read_text() if kept.exists() else ""
    kept.write_text("\n\n".join(page(former, sorted(folder.glob("*.txt")))) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

"""Start: the time of `ctrlmgr serve` with an empty SQLite until it is ready, and its memory then.

The time to import the package is measured separately, in a process that does nothing else, and subtracted: the goal is
for the rest. Each round starts in a new directory, so it includes creating certificates, tokens and the schema.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.report import Claim, report, run
from bench.support.served import serving

ROUNDS = 5
SETTLED = 3.0
"""Seconds after which a process that has become ready is idle."""

_MEGABYTE = 1e6
_IMPORT = "import ctrlmgr.cli, ctrlmgr.cli.serve, ctrlmgr.serve"


def importing() -> float:
    """Return the seconds that a process needs to import what `serve` imports."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", _IMPORT], check=True)
    return time.perf_counter() - began


def starting() -> tuple[float, float]:
    """Return the seconds until /readyz succeeds, and the resident bytes of the idle process."""
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        with serving(Path(name)) as served:
            took = time.perf_counter() - began
            time.sleep(SETTLED)
            return took, served.resident()


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    importing()  # once, so that the files are cached and compiled
    imports, starts, memory = [], [], []
    for _ in range(ROUNDS):
        imports.append(importing())
        took, resident = starting()
        starts.append(took)
        memory.append(resident)
    beyond = median(starts) - median(imports)
    print(f"start to ready {median(starts):.2f} s, of which importing takes {median(imports):.2f} s")
    claims = [
        Claim("start to ready beyond importing", beyond * 1e3, 1000.0, 1.0, "ms", at_most=True),
        Claim("resident memory, idle", median(memory) / _MEGABYTE, 120.0, 1.0, "MB", at_most=True),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

"""Measures the time until `ctrlmgr serve` with an empty SQLite database is ready, and its memory at that time.

The time to import the package is measured separately, in a process that only imports, and subtracted. The goal applies
to the time that remains after subtraction. Each round starts in a new directory, so its time includes the creation of
certificates, tokens and the schema.

Two more claims are about tests: the time of `ctrlmgr exec -- true`, compared with the start of a server in the same
run, and the time to create and delete a test's namespace.
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
from ctrlmgr import logging
from ctrlmgr.testing import Harness
from ctrlmgr.testing.namespaces import OwnNamespace
from ctrlmgr.testing.served import ServerProcess
from examples import website

ROUNDS = 5
NAMESPACES = 50
"""Number of tests that have their own namespace, or their own log."""
SETTLED = 3.0
"""Seconds after which a process that has become ready is idle."""

_MEGABYTE = 1e6
_IMPORT = "import ctrlmgr.cli, ctrlmgr.cli.serve, ctrlmgr.serve"


def importing() -> float:
    """Return the seconds that a process needs to import the modules of `ctrlmgr serve`."""
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


def executing() -> float:
    """Return the seconds of `ctrlmgr exec -- true`: it starts a server, runs the command, and stops the server."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "ctrlmgr", "exec", "--", "true"], check=True)
    return time.perf_counter() - began


def own_namespaces() -> list[float]:
    """Return the seconds that each of several tests needs to create and delete its own namespace on one server."""
    took = []
    with tempfile.TemporaryDirectory() as name, ServerProcess(Path(name), "--database", "memory:") as server:
        for number in range(NAMESPACES):
            folder = Path(name) / str(number)
            folder.mkdir()
            began = time.perf_counter()
            with OwnNamespace(server, folder):
                pass
            took.append(time.perf_counter() - began)
    return took


def own_logs() -> list[float]:
    """Return the seconds that each of several tests needs to create its own harness with its own log."""
    logging.configure(level="warning", format="console")
    took = []
    for _ in range(NAMESPACES):
        began = time.perf_counter()
        Harness(website.app)
        took.append(time.perf_counter() - began)
    return took


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    importing()  # one round before measuring, so that the files are cached and compiled
    imports, starts, memory, commands = [], [], [], []
    for _ in range(ROUNDS):
        imports.append(importing())
        took, resident = starting()
        starts.append(took)
        memory.append(resident)
        commands.append(executing())
    beyond = median(starts) - median(imports)
    print(f"start to ready {median(starts):.2f} s, of which importing takes {median(imports):.2f} s")
    claims = [
        Claim("start of a server until it is ready, without imports", beyond * 1e3, 1000.0, 1.0, "ms", at_most=True),
        Claim("resident memory of an idle server", median(memory) / _MEGABYTE, 120.0, 1.0, "MB", at_most=True),
        Claim("ctrlmgr exec -- true", median(commands) * 1e3, median(starts) * 1e3, 1.5, "ms", at_most=True),
        Claim("a namespace for a test", median(own_namespaces()) * 1e3, 50.0, 1.0, "ms", at_most=True),
        Claim("a harness with its own log", median(own_logs()) * 1e3, 50.0, 1.0, "ms", at_most=True),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

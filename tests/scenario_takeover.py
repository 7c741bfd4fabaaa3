"""Plays scenarios while `ctrlmgr serve` is killed at random checkpoints, and other processes continue its work.

    python -m tests.scenario_takeover [--seed 0] [--chance 0.5] [--part workloads] [REGEX]

The scenarios are stored beside the conformance corpora (see `tests.conformance`), and are played one after the other.
At each checkpoint, the server is killed with the given probability, and a new server continues with the same log. The
results are compared with the results of Kubernetes; the exit code is the exit code of the comparison.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from tests.conformance import PARTS, Part, Server, serving


class SuccessiveServers:
    """Runs one server after another on the same log; the class is a context manager."""

    def __init__(self, part: Part, work: Path) -> None:
        self._part = part
        self._work = work
        self._stack = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self.deaths = 0

    def start(self) -> Server:
        """Start a server; the previous server must have ended."""
        server = self._stack.enter_context(serving(self._part, f"sqlite:///{self._work}/ctrlmgr.db", self._work))
        self._process = server.process
        return server

    def succeed(self) -> Server:
        """Kill the running server, and start another server."""
        assert self._process is not None, "there is one"
        self._process.kill()
        self._process.wait()
        self._stack.close()
        self.deaths += 1
        return self.start()

    def __enter__(self) -> SuccessiveServers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def play(part: Part, only: str, actual: Path, *, seed: int, chance: float) -> int:
    """Play the scenarios of a part that match a pattern, and return the number of kills."""
    recordings = scenarios_folder()
    sys.path.insert(0, str(recordings))
    drive: Any = importlib.import_module("drive")
    random = Random(seed)
    with tempfile.TemporaryDirectory() as directory, SuccessiveServers(part, Path(directory)) as servers:
        server = servers.start()
        client = drive.Client(server.url, server.token, str(server.authority))

        def at_checkpoint(_: str) -> None:
            if random.random() < chance:
                client.server = servers.succeed().url.rstrip("/")

        paths = [str(each) for each in sorted((recordings / part.data).glob("*.json.gz"))]
        scale = float(os.environ.get("SETTLE_SCALE", "0.2"))
        scenarios = drive.load_scenarios(paths, only)
        results = drive.run_all(client, scenarios, scale=scale, cleanup=False, on_checkpoint=at_checkpoint)
        drive.dump(results, str(actual))
        return servers.deaths


def scenarios_folder() -> Path:
    """Return the path of the file with the scenarios."""
    return Path(os.environ.get("CONFORMANCE", "../shared/conformance")).resolve()


def is_as_recorded(part: Part, only: str, actual: Path) -> bool:
    """Compare the results of scenarios with the results of Kubernetes, and print the differences."""
    folder = scenarios_folder()
    command = [sys.executable, str(folder / "compare.py"), "--only", only, str(folder / part.expected), str(actual)]
    return subprocess.run(command, check=False).returncode == 0


def main() -> int:
    """Play the scenarios, and compare the results with those of Kubernetes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chance", type=float, default=0.5)
    parser.add_argument("--part", default="workloads", choices=["workloads", "cluster"])
    parser.add_argument("only", nargs="?", default=".", metavar="REGEX")
    given = parser.parse_args()
    part = PARTS[given.part]
    with tempfile.TemporaryDirectory() as directory:
        actual = Path(directory) / "actual.json.gz"
        deaths = play(part, given.only, actual, seed=given.seed, chance=given.chance)
        sys.stderr.write(f"the server died {deaths} times\n")
        return 0 if is_as_recorded(part, given.only, actual) else 1


if __name__ == "__main__":
    sys.exit(main())

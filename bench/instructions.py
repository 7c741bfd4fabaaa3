"""What admission and audit cost by count, not by time: the instructions that the server executes for a create.

The server runs under valgrind's callgrind, fifty times slower, and what it executes is counted between two moments:
other loads on the machine change it by a few in a hundred, where times differ by as much as is measured. What
instructions cannot say is what waits for memory; and SHA-256, which processors have an instruction for, counts as some
thousands here. `bench.admission` and `bench.audit` measure time. Needs valgrind.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.admission import ALL_OFF, KINDS, NO_CONTROLLERS, prepare
from bench.audit import SERVICES, USERS, options
from bench.report import Claim, report
from bench.support.https_load import Load, measure
from bench.support.served import Served, serving

CLIENTS = 16
SHORT, LONG = 4.0, 20.0
"""Seconds of creates."""
AFTER = 4.0
"""Seconds after which what requests have left to be done is done."""
PATIENCE = 30.0


class Counting:
    """A server under callgrind."""

    def __init__(self, served: Served, folder: Path) -> None:
        """Count what `served` executes, which writes its counts to `folder`."""
        self._served = served
        self._folder = folder

    def of_create(self, served: Served, path: str, body: object) -> float:
        """Return the instructions that a create takes; `served` says as whom to ask.

        What connections take to begin with is in a short count too, and what the server does by itself in an idle one.
        """
        request = served.request("POST", path, json.dumps(body))
        self._create(served, request, SHORT)  # until it has done what it does the first time
        (few, short), (many, long) = (self._create(served, request, seconds) for seconds in (SHORT, LONG))
        time.sleep(LONG - SHORT)
        idle = self._since_last()
        return (long - short - idle) / (many - few)

    def _create(self, served: Served, request: str, seconds: float) -> tuple[int, int]:
        """Return how many creates there were in some seconds, and what was executed meanwhile."""
        load = Load(served.host, served.port, served.authority, CLIENTS, seconds, [request], 0.0, expect=201)
        answers = measure(load).answers
        time.sleep(AFTER)
        return answers, self._since_last()

    def _since_last(self) -> int:
        """Return the instructions executed since this was last asked."""
        before = set(self._folder.glob("counts*"))
        command = ["callgrind_control", "--dump", str(self._served.process)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        ends_at = time.monotonic() + PATIENCE
        while time.monotonic() < ends_at:
            for each in set(self._folder.glob("counts*")) - before:
                totals = [line for line in each.read_text().splitlines() if line.startswith("totals:")]
                if totals:
                    return int(totals[0].split()[1])
            time.sleep(0.1)
        raise TimeoutError("callgrind has written no counts")


def counted(folder: Path) -> Sequence[str]:
    """Return the command under which a server is counted."""
    return ("valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counts")


def of_admission() -> Iterator[Claim]:
    """Compare creates on a server with the default plugins with those on one without any."""
    counts: dict[tuple[str, Sequence[str]], float] = {}
    for off in ((), ALL_OFF):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with serving(folder, *NO_CONTROLLERS, *off, under=counted(folder)) as served:
                prepare(served, "plain")
                counting = Counting(served, folder)
                for kind, (plural, body) in KINDS.items():
                    counts[kind, off] = counting.of_create(served, f"/api/v1/namespaces/plain/{plural}", body)
    for kind in KINDS:
        ours, none = (1e9 / counts[kind, off] for off in ((), ALL_OFF))
        yield Claim(f"creates of {kind}, default plugins to none", ours, none, 0.85, "a billion")


def of_audit() -> Claim:
    """Compare creates of Services that are written down with those that are let off."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder, *options(folder), under=counted(folder)) as served:
            counting, body = Counting(served, folder), KINDS["Services"][1]
            written, let_off = (counting.of_create(served._replace(token=user), SERVICES, body) for user in USERS)
    return Claim("create of a Service, audited at Metadata", written, let_off, 1.05, "each", at_most=True)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    return report([*of_admission(), of_audit()], arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Measures the precision of inferred causes in `ctrlmgr why` on our own log, which contains the true causes.

The story of a day in a cluster (`bench.support.stories`) runs on `ctrlmgr serve` with simulated nodes. The benchmark
exports the server's log as a watch, imports it again, and compares the inferred causes with the recorded ones, by kind
and controller.

Run `python -m bench.inference [--check] [--database URL]`; with `--database`, the benchmark reads the log at URL
instead, and does not delete it.
"""

from __future__ import annotations

import argparse
import json
import random
import ssl
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report import Claim, report
from bench.support.inferred import Row, Table, measure, total
from bench.support.served import Served, serving
from bench.support.stories import tell
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog.opening import open_log_for_reading

_NODES = ("--nodes", "4", "--simulated-seed", "7")
_QUICK = ("--node-monitor-period", "1s", "--node-monitor-grace-period", "9s", "--node-eviction-rate", "100")
_NEEDED = 0.98


class _Teller:
    """A client that performs a story on a server."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._context = ssl.create_default_context(cafile=served.authority)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, media: str) -> Any:
        headers = {"Authorization": f"Bearer {self._served.token}", "Content-Type": media}
        sent = None if body is None else json.dumps(body).encode()
        url = f"https://{self._served.host}:{self._served.port}{path}"
        request = urllib.request.Request(url, sent, headers, method=method)
        with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
            return json.loads(answer.read())

    def create(self, path: str, body: dict[str, Any]) -> object:
        return self._send("POST", path, body, "application/json")

    def patch(self, path: str, body: dict[str, Any]) -> object:
        return self._send("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> object:
        return self._send("DELETE", path, None, "application/json")

    def names(self, path: str) -> Sequence[str]:
        return [each["metadata"]["name"] for each in self._send("GET", path, None, "application/json")["items"]]

    def rest(self, seconds: float = 3.0) -> None:
        time.sleep(seconds / 2)


def played(folder: Path) -> str:
    """Perform the story on a server; return the URL of the server's log."""
    with serving(folder, *_NODES, *_QUICK) as served:
        teller = _Teller(served)
        while len(teller.names("/api/v1/nodes")) < 4:
            time.sleep(0.1)
        tell(teller, lost=30)
    return f"sqlite:///{folder / 'ctrlmgr.db'}"


def show(table: Table) -> None:
    """Print how many causes were inferred for each kind, and how many of the inferred causes are right."""
    print(f"{'kind':<34} {'controller':<40} writes inferred named causes right direct")
    rows = {f"{kind:<34} {controller:<40}": row for (kind, controller), row in sorted(table.items())}
    for head, row in {**rows, f"{'in all':<75}": total(table.values())}.items():
        print(f"{head} {row.writes:>6} {row.inferred:>8} {row.named:>5} {row.causes:>6} {row.right:>5} {row.direct:>6}")


def claims(table: Table) -> list[Claim]:
    """Return the claims."""
    row: Row = total(table.values())
    return [
        Claim("inferred causes that are right, of all inferred causes", row.right, row.causes, _NEEDED, "causes"),
        Claim(
            "inferred controllers that are right, of all inferred controllers",
            row.named,
            row.inferred,
            _NEEDED,
            "writes",
        ),
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", metavar="URL")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = options.database or played(folder)
        log = open_log_for_reading(url, clock=SystemClock(), random=random.SystemRandom())
        try:
            table = measure(log, folder)
        finally:
            log.close()
    show(table)
    return report(claims(table), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Measures how much a client with 500 connections slows down another client of the same server.

Both clients are ordinary users, so their requests belong to the same priority level, in two flows. The quiet client
sends one GET at a time. The noisy client sends GETs on 500 connections, each as fast as the server answers, and the
server refuses a part of them with 429. The quiet client's latency beside the noisy client is compared with two limits
of the same run: its latency on an idle server, and its latency beside a client with `CALM` connections. Beside the
second client the server's processor is busy as well, so this ratio shows the effect of the 500 connections alone.

The module `request_costs` measures the cost of priority and fairness, and of tracing, for a request.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from bench.authorization import READ, prepare
from bench.fairness import request_costs
from bench.report import Claim, report, run
from bench.support.https_load import Load, Measured, measure
from bench.support.served import CLIENT_CORE, Served, on_core, serving

NOISY, CALM = 500, 16
"""Numbers of connections of the other client."""
SECONDS = 3.0
SETTLING = 3.0
"""Seconds for which the other client sends requests before and after the quiet client."""
ROUNDS = 3
_MICROSECONDS = 1e3


def load(served: Served, user: int, connections: int, seconds: float) -> Load:
    """Return a load of GETs by the user with this number."""
    request = served._replace(token=f"token-{user}").request("GET", READ)
    return Load(served.host, served.port, served.authority, connections, seconds, [request], is_refused=user > 0)


def quiet(served: Served) -> Measured:
    """Return the latencies of the quiet client."""
    return measure(load(served, 0, 1, SECONDS))


def beside(served: Served, connections: int) -> tuple[Measured, Measured]:
    """Return the latencies of the quiet client and of another client with this number of connections.

    Both clients run at the same time.
    """
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(measure, load(served, 1, connections, SECONDS + 2 * SETTLING))
        measure(load(served, 0, 1, SETTLING))  # the other client connects meanwhile
        found = quiet(served)
        return found, other.result()


def start(folder: Path) -> None:
    """Write the tokens of the two clients."""
    (folder / "tokens.csv").write_text("".join(f"token-{user},user-{user},user-{user}-uid\n" for user in range(2)))
    (folder / "tokens.csv").chmod(0o600)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    alone, calm, noisy = [], [], []
    with tempfile.TemporaryDirectory() as name:
        start(Path(name))
        with serving(Path(name)) as served, on_core(CLIENT_CORE):
            prepare(served)
            for _ in range(ROUNDS):
                alone.append(quiet(served).p99 * _MICROSECONDS)
                calm.append(beside(served, CALM)[0].p99 * _MICROSECONDS)
                found, other = beside(served, NOISY)
                noisy.append(found.p99 * _MICROSECONDS)
                print(
                    f"p99 alone {alone[-1]:,.0f} us, beside {CALM} connections {calm[-1]:,.0f} us, beside {NOISY} "
                    f"{noisy[-1]:,.0f} us; p99 of the {NOISY} connections {other.p99:,.0f} ms at {other.rate:,.0f}/s"
                )
    beside_noisy = median(noisy)
    claims = [
        *request_costs.claims(),
        Claim(f"p99 beside {NOISY} connections, compared with {CALM}", beside_noisy, median(calm), 2.0, "us", True),
        Claim(f"p99 beside {NOISY} connections, compared with none", beside_noisy, median(alone), 2.0, "us", True),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

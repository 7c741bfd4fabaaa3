"""Measures requests while PostgreSQL hangs: `python -m tests.robustness.hung_database --rounds 5`.

In each round, every process of the database server is stopped (SIGSTOP), so that the host accepts packets but the
database server does not respond. Then the script sends requests, and lets the database server continue. The script
prints the responses and their durations. There are three types of violations: a request that needs the database was not
refused within 5 s, another request took longer than 1 s, or a server had to be restarted. If there is a violation, the
exit code is 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import migrate_log
from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.serving import ConfiguredServer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_DATABASE = "hung"
_REFUSED_WITHIN = 5.0
_CACHED_WITHIN = 1.0
_READY_WITHIN = 15.0
_NOTICED_AFTER = 8.0
"""Seconds within which `/readyz` must begin to fail."""


class TimedResponse(NamedTuple):
    """The response to a request, and the duration of the request in seconds."""

    what: str
    code: int
    seconds: float


@contextmanager
def served_on_its_own(folder: Path) -> Iterator[tuple[PostgresCluster, ConfiguredServer]]:
    """A server with a PostgreSQL database that no other process uses."""
    with PostgresCluster() as cluster:
        cluster.execute(f"CREATE DATABASE {_DATABASE}")
        migrate_log(cluster.url(_DATABASE), clock=SystemClock(), random=random.Random(1))
        server = ConfiguredServer(folder, "--database", cluster.url(_DATABASE))
        try:
            server.start()
            yield cluster, server
        finally:
            server.close()


def main() -> int:
    """Run the measurement with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder, served_on_its_own(Path(folder)) as (cluster, server):
        for number in range(rounds):
            problems += _round(number, cluster, server)
    for problem in problems:
        _say(problem)
    return 1 if problems else 0


def _round(number: int, cluster: PostgresCluster, server: ConfiguredServer) -> list[str]:
    asked: list[tuple[str, Callable[[], TimedResponse], float]] = [
        (
            "create",
            lambda: _ask(server, "POST", CONFIG_MAPS, {"metadata": {"name": f"round-{number}"}}),
            _REFUSED_WITHIN,
        ),
        ("list the newest", lambda: _ask(server, "GET", CONFIG_MAPS), _REFUSED_WITHIN),
        ("get the newest", lambda: _ask(server, "GET", f"{CONFIG_MAPS}/kube-root-ca.crt"), _REFUSED_WITHIN),
        ("list from the cache", lambda: _ask(server, "GET", f"{CONFIG_MAPS}?resourceVersion=0"), _CACHED_WITHIN),
        ("livez", lambda: _ask(server, "GET", "/livez"), _CACHED_WITHIN),
    ]
    cluster.freeze()
    try:
        began = time.monotonic()
        with ThreadPoolExecutor(len(asked)) as pool:
            answers = [pool.submit(ask) for _, ask, _ in asked]
        time.sleep(max(0.0, began + _NOTICED_AFTER - time.monotonic()))
        ready = _ask(server, "GET", "/readyz")
    finally:
        cluster.thaw()
    problems = [] if ready.code == 500 else ["readyz did not tell of it"]
    for (name, _, within), answer in zip(asked, answers, strict=True):
        problems += _judge(name, answer.result(), within)
    return problems + _await_recovery(server)


def _judge(name: str, answer: TimedResponse, within: float) -> list[str]:
    _say(f"{name}: {answer.code} after {answer.seconds:.2f} s")
    expected = (503, 504) if within == _REFUSED_WITHIN else (200,)
    problems = [] if answer.code in expected else [f"{name} was answered {answer.code}"]
    return problems if answer.seconds <= within else [*problems, f"{name} took {answer.seconds:.2f} s"]


def _await_recovery(server: ConfiguredServer) -> list[str]:
    began = time.monotonic()
    while _ask(server, "GET", "/readyz").code != 200:
        if time.monotonic() - began > _READY_WITHIN:
            return ["it did not recover"]
        time.sleep(0.05)
    _say(f"ready again after {time.monotonic() - began:.2f} s")
    return []


def _ask(server: ConfiguredServer, method: str, path: str, body: object = None) -> TimedResponse:
    began = time.monotonic()
    code, _ = server.request(method, path, body)
    return TimedResponse(path, code, time.monotonic() - began)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

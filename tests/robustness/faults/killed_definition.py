"""Kills a server during the deletion of a CustomResourceDefinition, repeatedly, at every step and at random times.

    python -m tests.robustness.faults.killed_definition [--rounds 20] [--seed N] [--database sqlite|postgresql]

Before each kill of the first series, one more instance has been deleted. The second series has the same number of
rounds, in which the server is killed at a random time after the deletion request. After each kill, the script starts a
new server; in the end, no instance may exist, and the kind may not be served. The exit code is 1 if there is a
violation.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from ctrlmgr.api.resource import DEFINITIONS as RESOURCE
from ctrlmgr.api.resource import Resource
from ctrlmgr.inspection import historical_state
from ctrlmgr.inspection.database import open_database
from ctrlmgr.testing.postgres import PostgresCluster
from tests.e2e.serving import Server, until
from tests.e2e.widgets import DEFINITIONS, definition
from tests.robustness.faults import new_seed
from tests.robustness.faults.injections import POSTGRESQL, SQLITE
from tests.robustness.faults.stage import database_of, sqlite_url
from tests.robustness.verdicts import say

GROUP = "killed.example.com"
WHERE = f"{DEFINITIONS}/widgets.{GROUP}"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
COUNT = 25
LONGEST = 0.6
"""Maximum number of seconds until the kill, in the rounds with random times."""


def left(server: Server) -> int:
    """Return the number of instances; return 0 if the kind is not served."""
    code, listed = server.request("GET", WIDGETS)
    return len(listed["items"]) if code == 200 else 0


def is_established(server: Server) -> bool:
    """Return whether the custom kind is served."""
    conditions: list[dict[str, Any]] = server.request("GET", WHERE)[1].get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def assert_deleted_despite_kill(server: Server, url: str, wait: Callable[[Server], None]) -> None:
    """Delete a CustomResourceDefinition, kill the server when `wait` returns, and check that no object is left after
    the next start.

    Raises AssertionError if an object is left.
    """
    server.create(DEFINITIONS, definition(GROUP))
    until(lambda: is_established(server))
    for index in range(COUNT):
        metadata = {"name": f"w{index}"}
        server.create(WIDGETS, {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": metadata})
    assert server.request("DELETE", WHERE)[0] == 200
    wait(server)
    server.kill()
    server.start()
    until(lambda: server.request("GET", WHERE)[0] == 404)
    until(lambda: server.request("GET", WIDGETS)[0] == 404)
    with open_database(url) as database:
        assert historical_state.objects(database, Resource(GROUP, "widgets")) == []
        assert historical_state.objects(database, RESOURCE, name=f"widgets.{GROUP}") == []


def at_step(remaining: int) -> Callable[[Server], None]:
    """Return a function that waits until at most this number of instances exist."""
    return lambda server: until(lambda: left(server) <= remaining)


def after(seconds: float) -> Callable[[Server], None]:
    """Return a function that waits for this number of seconds."""
    return lambda server: time.sleep(seconds)


def main() -> int:
    """Run the test with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, help="for repeating the moments")
    parser.add_argument("--database", choices=(SQLITE, POSTGRESQL), default=SQLITE)
    given = parser.parse_args()
    seed = new_seed() if given.seed is None else given.seed
    random = Random(seed)
    waits = [(f"{remaining} left", at_step(remaining)) for remaining in range(COUNT, -1, -1)]
    moments = [random.uniform(0, LONGEST) for _ in range(given.rounds)]
    waits += [(f"after {seconds:.3f} s", after(seconds)) for seconds in moments]
    say(f"seed {seed}, {len(waits)} kills on {given.database}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if given.database == POSTGRESQL:
            url = stack.enter_context(database_of(stack.enter_context(PostgresCluster())))
        else:
            url = sqlite_url(folder)
        server = Server(folder, "--database", url)
        stack.callback(server.close)
        server.start()
        for words, wait in waits:
            try:
                assert_deleted_despite_kill(server, url, wait)
            except AssertionError as error:
                say(f"killed with {words}: {error}; its log is {server.log}")
                return 1
    say("sound")
    return 0


if __name__ == "__main__":
    sys.exit(main())

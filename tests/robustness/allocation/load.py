"""Allocates few addresses and ports on several servers, as a long test: `python -m tests.robustness.allocation.load
--seed N`.

Callers create, change and delete Services while servers are killed. Then callers fill the ranges completely. Finally
the script checks all revisions of the log. The script prints its seed, statistics and violations; the exit code is 1 if
there are violations. `--database` is `sqlite`, `postgres` (a private server) or the URL of a database, which the script
fills.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import uvloop

from ctrlmgr.api.resource import SERVICES
from ctrlmgr.clock import SystemClock
from ctrlmgr.controllers.repair.address_findings import find_address_findings
from ctrlmgr.controllers.repair.port_findings import find_port_findings
from ctrlmgr.eventlog import EventLog, open_log
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS, Ranges
from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.allocation.callers import (
    FULL,
    NAMESPACE,
    PORTS,
    RANGE,
    Caller,
    Change,
    ReceivedResponses,
    creation,
    one_port,
)
from tests.robustness.allocation.truth import Ledger
from tests.robustness.faults import new_seed
from tests.robustness.histories.run import RunSetup, server_of
from tests.robustness.places import on_postgres, on_sqlite
from tests.robustness.serving import ConfiguredServer
from tests.robustness.verdicts import say, verdict

PROMPT = 1.0
"""Seconds within which a request must be refused if the range is full."""
_SETTINGS = f"""
[service]
cluster_ip_range = "{RANGE}"
node_port_range = "{PORTS}"
[compaction]
min_age = "1d"
[leader_election]
lease_duration = "3s"
renew_deadline = "2s"
retry_period = "1s"
"""
_MOST = 400
"""The number of attempts to fill the ranges at the end; it is larger than the number of free values."""


class Plan(NamedTuple):
    """The options of a run."""

    seed: int
    callers: int = 16
    """The number of callers for each server."""
    kills: int = 10
    between: float = 1.0
    """Seconds for which all servers run before one is killed."""


class Outcome(NamedTuple):
    """The results of a run; `seconds` is the duration of the load in seconds."""

    tally: ReceivedResponses
    ledger: Ledger
    refusal: float
    """Seconds of the slowest refusal because of a full range, measured without other load."""
    seconds: float
    wrong: list[str]


def allocate(plan: Plan, setting: RunSetup) -> Outcome:
    """Run the test; raises AssertionError if a server does not start or does not stop."""
    tally, final = ReceivedResponses(), ReceivedResponses()
    with ExitStack() as stack:
        servers = [server_of(setting._replace(settings=_SETTINGS), number) for number in range(setting.servers)]
        for server in servers:
            stack.callback(server.close)
            server.start()
        servers[0].create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        began = time.monotonic()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_load(plan, servers, tally))
            seconds = time.monotonic() - began
            wrong = runner.run(_fill(servers, final))
        for server in servers:
            server.stop()
    wrong += tally.wrong + final.wrong
    tally.granted += final.granted
    log = open_log(setting.database, clock=SystemClock(), random=random.Random(1))
    try:
        ledger = _judge(log, tally, wrong)
    finally:
        log.close()
    return Outcome(tally, ledger, final.slowest_refusal, seconds, wrong)


async def _load(plan: Plan, servers: Sequence[ConfiguredServer], tally: ReceivedResponses) -> None:
    stopped = asyncio.Event()
    draw = random.Random(plan.seed)
    async with asyncio.TaskGroup() as everybody:
        for number, server in enumerate(servers):
            for caller in range(plan.callers):
                everybody.create_task(Caller(server, tally, f"{plan.seed} {number} {caller}").run(stopped))
        for _ in range(plan.kills):
            await asyncio.sleep(plan.between * (0.5 + draw.random()))
            victim = draw.choice(servers)
            await asyncio.to_thread(victim.kill)
            await asyncio.to_thread(victim.start)
        await asyncio.sleep(plan.between)
        stopped.set()


async def _fill(servers: Sequence[ConfiguredServer], tally: ReceivedResponses) -> list[str]:
    """Allocate the last address, then the last port; check that every server refuses further allocations; return the
    errors.
    """
    callers = [Caller(server, tally, "") for server in servers]
    try:
        names = [f"last-{number}" for number in range(_MOST)]
        takings = [creation(name, one_port()) for name in names]
        wrong = await _take_all(callers, takings, creation("one-more", one_port()))
        takings = [Change("change", name, {"spec": {"type": "NodePort"}}) for name in names]
        return wrong + await _take_all(callers, takings, None)
    finally:
        for caller in callers:
            await caller.close()


async def _take_all(callers: Sequence[Caller], takings: Sequence[Change], more: Change | None) -> list[str]:
    """Allocate until the range is full; then check that every server refuses the requests `more`, or the request that
    was refused first.
    """
    for taking, caller in zip(takings, cycle(callers), strict=False):
        answer = await caller.ask(taking)
        if answer is None or answer.code not in (200, 201):
            messages = [await _refusal(each, more or taking) for each in callers]
            return [f"a full range: {message}" for message in messages if message not in FULL]
    return ["it was never full"]


async def _refusal(caller: Caller, change: Change) -> str:
    answer = await caller.ask(change)
    return "no answer" if answer is None else str(answer.fields.get("message"))


def _judge(log: EventLog, tally: ReceivedResponses, wrong: list[str]) -> Ledger:
    ledger = Ledger().read(log.scan())
    ranges = Ranges.parse(RANGE, PORTS)
    wrong += ledger.wrong
    wrong += ledger.compare(tally.granted)
    if ledger.used != set(ledger.claims):
        wrong.append(f"in the end {ledger.used ^ set(ledger.claims)} are either claimed or used, and not both")
    services, addresses, ports = (log.snapshot(each).objects for each in (SERVICES, IP_ADDRESSES, NODE_PORTS))
    findings = find_address_findings(services, addresses, ranges) + find_port_findings(services, ports, ranges.ports)
    wrong += [f"left to repair: {finding.message}" for finding in findings]
    return ledger


def main() -> int:
    """Run the test with the options of the command line."""
    arguments = _arguments()
    seed = new_seed() if arguments.seed is None else arguments.seed
    say(f"seed {seed}")
    with (
        tempfile.TemporaryDirectory(prefix="ctrlmgr-allocation-") as folder,
        places(Path(folder), arguments.database, arguments.processes) as setting,
    ):
        outcome = allocate(Plan(seed, arguments.threads, arguments.kills), setting)
    ledger, wrong = outcome.ledger, list(outcome.wrong)
    answers = sum(outcome.tally.answers.values())
    say(f"{answers} requests in {outcome.seconds:.0f} s, {arguments.kills} kills: {dict(outcome.tally.answers)}")
    say(f"{ledger.revisions} revisions checked, claimed: {dict(ledger.claimed)}, in use: {len(ledger.used)}")
    say(f"a full range refused in {outcome.refusal:.3f} s at the most")
    if outcome.refusal > PROMPT:
        wrong.append(f"a full range was refused after {outcome.refusal} s only")
    return verdict(wrong)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="for repeating a run, as far as it goes")
    parser.add_argument("--processes", type=int, default=4, help="serve processes")
    parser.add_argument("--threads", type=int, default=16, help="callers at each of them")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--database", default="sqlite", help="sqlite, postgres, or a URL")
    return parser.parse_args()


@contextmanager
def places(folder: Path, database: str, servers: int) -> Iterator[RunSetup]:
    """Yield a database for a run: `sqlite`, `postgres`, or the database at a URL."""
    if database == "postgres":
        with PostgresCluster() as cluster, on_postgres(folder, cluster, servers=servers) as setting:
            yield setting
    elif database == "sqlite":
        yield on_sqlite(folder)._replace(servers=servers)
    else:
        yield RunSetup(folder, database, servers)


if __name__ == "__main__":
    sys.exit(main())

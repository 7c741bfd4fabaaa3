"""Deletes a namespace with many objects while servers are killed: `python -m tests.robustness.namespaces.deletion`.

The script prints its seed, the duration of the deletion after the last finalizer was removed, and the violations; the
exit code is 1 if there are violations. The option `--database` is `sqlite` or `postgres` (a private server).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from ctrlmgr.api.resource import NAMESPACES
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Event, EventType, open_log
from tests.robustness.allocation.load import places
from tests.robustness.faults import new_seed
from tests.robustness.histories.run import RunSetup, server_of
from tests.robustness.serving import ConfiguredServer
from tests.robustness.verdicts import say, verdict
from tests.robustness.wire import Connection

DOOMED, OTHER = "doomed", "other"
HOLD = "example.com/hold"
_KEPT = "kept"
PROMPT = 3.0
"""Seconds after the removal of the last finalizer within which the namespace must be removed."""
_PATIENCE = 60.0
_CALLERS = 16
_HELD_EVERY = 20
"""One of this number of objects has a finalizer that delays its deletion."""
_SETTINGS = """
[namespace]
deletion_grace = "1s"
[leader_election]
lease_duration = "3s"
renew_deadline = "2s"
retry_period = "1s"
"""
"""The duration of leases; it is short, so that another process soon takes over."""
_SPECS: dict[str, Any] = {
    "configmaps": {"data": {"a": "b"}},
    "secrets": {"data": {"a": "Yg=="}},
    "serviceaccounts": {},
    "services": {"spec": {"ports": [{"port": 80}]}},
    "limitranges": {"spec": {"limits": []}},
    "pods": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
}


_OF_OTHERS = ("pods", "endpoints", "endpointslices")
"""Resources whose objects may be deleted before the last pod: pods, and objects that controllers delete together with
pods.
"""


class Plan(NamedTuple):
    """The options of a run."""

    seed: int
    objects: int = 1000
    kills: int = 5


class Outcome(NamedTuple):
    """The results in seconds: from the deletion request until only objects with finalizers are left, and from the
    removal of the finalizers to the end.
    """

    emptied: float
    released: float
    revisions: int
    wrong: list[str]


def delete(plan: Plan, setting: RunSetup) -> Outcome:
    """Run the test; raise AssertionError if a server does not start or does not stop, or if the namespace is not
    removed.
    """
    setting = setting._replace(settings=_SETTINGS)
    with ExitStack() as stack:
        servers = [server_of(setting, number) for number in range(setting.servers)]
        for server in servers:
            stack.callback(server.close)
            server.start()
        for name in (DOOMED, OTHER):
            servers[0].create("/api/v1/namespaces", {"metadata": {"name": name}})
        paths = list(_paths(plan.objects))
        log = stack.enter_context(closing(open_log(setting.database, clock=SystemClock(), random=random.Random(1))))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_all(servers[0], [("POST", path, body) for path, body in _creations(paths)]))
            began = log.head().revision
            code, answer = servers[0].request("DELETE", f"/api/v1/namespaces/{DOOMED}")
            assert code == 200, answer
            at = time.monotonic()
            _kill(servers, plan)
            _wait(servers[0], lambda namespace: _remaining(namespace) == (plan.objects - 1) // _HELD_EVERY + 1)
            emptied = time.monotonic() - at
            held = [f"{path}/held-{number}" for number, path in enumerate(paths) if number % _HELD_EVERY == 0]
            release = {"metadata": {"finalizers": None}}
            at = time.monotonic()
            runner.run(_all(servers[-1], [("PATCH", path, release) for path in held]))
            at = time.monotonic()
        _wait(servers[0], lambda namespace: namespace is None)
        released = time.monotonic() - at
        for server in servers:
            server.stop()
        return Outcome(emptied, released, log.head().revision - began, list(_judge(log.scan(), began)))


def _paths(objects: int) -> Iterator[str]:
    kinds = cycle(_SPECS)
    return (f"/api/v1/namespaces/{DOOMED}/{next(kinds)}" for _ in range(objects))


def _creations(paths: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for number, path in enumerate(paths):
        held = number % _HELD_EVERY == 0
        metadata = {"name": f"held-{number}", "finalizers": [HOLD]} if held else {"name": f"free-{number}"}
        yield path, {"metadata": metadata, **_SPECS[path.rpartition("/")[2]]}
    for kind, fields in _SPECS.items():
        yield f"/api/v1/namespaces/{OTHER}/{kind}", {"metadata": {"name": _KEPT}, **fields}


async def _all(server: ConfiguredServer, requests: Sequence[tuple[str, str, Any]]) -> None:
    """Send requests, several at a time; each request must succeed."""
    waiting = iter(requests)

    async def call() -> None:
        connection = Connection(server.site)
        for method, path, body in waiting:
            kind = "application/merge-patch+json" if method == "PATCH" else ""
            answer = await connection.request(method, path, body, content_type=kind)
            assert answer.code in (200, 201), answer.body
        connection.close()

    async with asyncio.TaskGroup() as callers:
        for _ in range(_CALLERS):
            callers.create_task(call())


def _kill(servers: Sequence[ConfiguredServer], plan: Plan) -> None:
    """Kill one server after the other at random times during the deletion."""
    draw = random.Random(plan.seed)
    for _ in range(plan.kills):
        time.sleep(0.5 + draw.random() * 1.5)
        victim = draw.choice(servers)
        victim.kill()
        victim.start()


def _wait(server: ConfiguredServer, claim: Any) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        code, namespace = server.request("GET", f"/api/v1/namespaces/{DOOMED}")
        if claim(namespace if code == 200 else None):
            return
        assert time.monotonic() < deadline, namespace
        time.sleep(0.02)


def _remaining(namespace: Any) -> int:
    """Return the number of objects with finalizers that the namespace's conditions report; return -1 if there are no
    conditions yet.
    """
    for condition in namespace["status"].get("conditions", ()):
        if condition["type"] == "NamespaceFinalizersRemaining" and condition["status"] == "True":
            return int(condition["message"].partition(f"{HOLD} in ")[2].split()[0])
    return -1


def _judge(events: Iterator[Event], began: int) -> Iterator[str]:
    gone = False
    pods = set[str]()
    for event in events:
        obj = event.object
        if obj.namespace == DOOMED and event.resource.plural == "pods":
            (pods.discard if event.type is EventType.DELETED else pods.add)(obj.name)
        if event.revision <= began:
            continue
        if obj.namespace == DOOMED:
            if gone:
                yield f"revision {event.revision}: {event.resource} {obj.name} after the namespace had gone"
            if event.type is EventType.ADDED:
                yield f"revision {event.revision}: {event.resource} {obj.name} was created in a terminating namespace"
            if pods and event.type is EventType.DELETED and event.resource.plural not in _OF_OTHERS:
                yield f"revision {event.revision}: {event.resource} {obj.name} was deleted before the pods"
        elif obj.namespace == OTHER and (obj.name == _KEPT or event.type is EventType.DELETED):
            yield f"revision {event.revision}: {event.resource} {obj.name} of another namespace was touched"
        elif event.resource == NAMESPACES and obj.name == DOOMED:
            gone = event.type is EventType.DELETED
    if not gone:
        yield "the namespace is still there"


def main() -> int:
    """Run the test with the options of the command line."""
    arguments = _arguments()
    seed = new_seed() if arguments.seed is None else arguments.seed
    say(f"seed {seed}")
    with (
        tempfile.TemporaryDirectory(prefix="ctrlmgr-namespace-") as folder,
        places(Path(folder), arguments.database, arguments.processes) as setting,
    ):
        outcome = delete(Plan(seed, arguments.objects, arguments.kills), setting)
    wrong = list(outcome.wrong)
    say(f"emptied after {outcome.emptied:.1f} s, {arguments.kills} kills in them; {outcome.revisions} revisions")
    say(f"gone {outcome.released:.2f} s after the last finalizer")
    if outcome.released > PROMPT:
        wrong.append(f"it took {outcome.released:.1f} s")
    return verdict(wrong)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="for repeating a run, as far as it goes")
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2, help="serve processes")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--database", default="sqlite", choices=("sqlite", "postgres"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

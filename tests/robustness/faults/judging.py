"""Checks after a fault, in addition to the checks of histories: terms, controllers, quiescence, the hash chain."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.robustness.faults.stage import Stage
from tests.robustness.histories.history import Logged
from tests.robustness.histories.tail import Tail

_QUIET = 1.5
"""Seconds without a write after which the processes are assumed to be quiescent."""
_PATIENCE = 60.0
_LOOK = 0.1
_LEASES = "leases.coordination.k8s.io"


def settle(tail: Tail, sound: Callable[[Sequence[Logged]], Iterator[str]]) -> list[str]:
    """Wait until processes write only Leases, and `sound` finds no violations in the log.

    If this takes too long, return the violations, or a message that the writes continue.
    """
    deadline = time.monotonic() + _PATIENCE
    seen, since = -1, time.monotonic()
    while time.monotonic() < deadline:
        tail.read()
        newest = next((event.revision for event in reversed(tail.log) if event.resource != _LEASES), 0)
        now = time.monotonic()
        if newest != seen:
            seen, since = newest, now
        elif now - since >= _QUIET and not list(sound(tail.log)):
            return []
        time.sleep(_LOOK)
    last = [f"{event.type} {event.resource} {event.namespace}/{event.name}" for event in tail.log[-3:]]
    return list(sound(tail.log)) or [f"controllers: they go on writing after {_PATIENCE:g} s: {last}"]


def converged(log: Sequence[Logged]) -> Iterator[str]:
    """Yield the work that controllers and allocators have not done for the Services, all of which have selectors."""
    there: dict[str, set[tuple[str, str]]] = {}
    for event in log:
        places, place = there.setdefault(event.resource, set()), (event.namespace, event.name)
        if event.type == "DELETED":
            places.discard(place)
        else:
            places.add(place)
    services = there.get("services", set())
    endpoints = there.get("endpoints", set())
    if services != endpoints:
        yield f"controllers: Endpoints without a Service or the other way round: {sorted(services ^ endpoints)}"
    addresses = there.get("ipaddresses.networking.k8s.io", set())
    if len(services) != len(addresses):
        yield f"allocators: {len(addresses)} addresses for {len(services)} services"
    for _, namespace in there.get("namespaces", set()):
        for resource, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")):
            if (namespace, name) not in there.get(resource, set()):
                yield f"controllers: there is no {resource}/{name} in {namespace}"


def verified(stage: Stage) -> Iterator[str]:
    """Yield the output of `ctrlmgr verify` for a server's data directory if the output reports damage."""
    folder = stage.members[0].folder
    command = [sys.executable, "-m", "ctrlmgr", "verify", "--database", stage.url, "--data-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    if done.returncode:
        yield f"verify: ended with {done.returncode}: {done.stdout}{done.stderr}"

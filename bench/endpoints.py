"""Measures the delays from ready pods to the Endpoints and EndpointSlices, through a real server over TLS.

- Pods of many services become ready as fast as the API processes the status patches of 16 clients, service by service.
  A watcher detects when every Endpoints object and every slice is complete; the time until then is compared with the
  duration of all patches. The benchmark counts the writes of Endpoints, including creations.
- Then one pod changes its readiness repeatedly, each time after every watcher has received the last change. The delay
  until a watcher of Endpoints receives a change is compared with the duration of the patch itself. The 99th percentile
  of the delay is compared with its median.
- Finally one pod that 3,000 further services select changes its address, so that the endpoints and the EndpointSlice
  controller must update all 3,000 services. Meanwhile pods of other services in the same namespace become unready, one
  by one. The delay until a watcher of Endpoints receives a pod's change is compared with the delay on an idle server.

Run `python -m bench.endpoints [--services N] [--pods M] [--flips K] [--check]`; the full size is 1,000 services of 10
pods. The processes with the clients and the watchers run on another core than the server.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import msgspec

from bench.report import Claim, report
from bench.support.endpoints_watch import Completion, Flips, Plan
from bench.support.https_load import Load, Measured, measure
from bench.support.served import CLIENT_CORE, ROOM, Served, on_core, serving

CLIENTS = 16
NAMESPACE = "bench"
NODES = 10
CORE = f"/api/v1/namespaces/{NAMESPACE}"
DISCOVERY = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}"
MERGE = "application/merge-patch+json"
REFRESHED = 3_000
"""Number of Services that the controllers update after one change of a pod."""
ROUNDS = 3
DEPTH = re.compile(r'^workqueue_depth\{name="endpoints-controller",.*\} ([\d.]+)$', re.MULTILINE)


def service(number: int) -> str:
    """Return the body of a service."""
    spec = {"selector": {"app": f"s-{number}"}, "ports": [{"port": 80, "targetPort": 8080}]}
    return json.dumps({"metadata": {"name": f"s-{number}"}, "spec": spec})


def pod(number: int, replica: int) -> str:
    """Return the body of a pod that is bound to a node and does not run yet."""
    metadata = {"name": f"s-{number}-{replica}", "labels": {"app": f"s-{number}"}}
    spec = {"nodeName": f"node-{replica % NODES}", "containers": [{"name": "main", "image": "app"}]}
    return json.dumps({"metadata": metadata, "spec": spec})


def node(number: int) -> str:
    """Return the body of a Node."""
    return json.dumps({"metadata": {"name": f"node-{number}", "labels": {"topology.kubernetes.io/zone": "zone-1"}}})


def status(number: int, replica: int, *, ready: bool) -> str:
    """Return the body of a status patch that makes a pod running, and ready or unready."""
    ip = f"10.{64 + number // 250}.{number % 250}.{replica + 1}"
    condition = {"type": "Ready", "status": str(ready)}
    fields = {"phase": "Running", "conditions": [condition], "podIP": ip, "podIPs": [{"ip": ip}]}
    return json.dumps({"status": fields})


def send(served: Served, requests: Sequence[str], expect: int) -> Measured:
    """Send each request once, as fast as the clients can send."""
    with on_core(CLIENT_CORE):
        return measure(
            Load(served.host, served.port, served.authority, CLIENTS, 3600.0, requests, 0.0, expect, once=True)
        )


def fill(served: Served, services: int, pods: int) -> None:
    """Create all namespaces, nodes, services and pods; no pod is running."""
    served.open("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": NAMESPACE}}).encode())
    requests = [served.request("POST", "/api/v1/nodes", node(number)) for number in range(NODES)]
    requests += [served.request("POST", f"{CORE}/services", service(number)) for number in range(services)]
    requests += [
        served.request("POST", f"{CORE}/pods", pod(number, replica))
        for number in range(services)
        for replica in range(pods)
    ]
    send(served, requests, 201)


def patch(served: Served, number: int, replica: int, *, ready: bool) -> str:
    """Return the request that makes a pod ready or unready."""
    path = f"{CORE}/pods/s-{number}-{replica}/status"
    return served.request("PATCH", path, status(number, replica, ready=ready), MERGE)


@contextmanager
def watching(served: Served, plan: Callable[[str, str], Plan]) -> Iterator[subprocess.Popen[bytes]]:
    """Watch Endpoints and slices while the block runs; `plan` creates the plan from the two HTTP watch requests."""
    version = msgspec.json.decode(served.open("GET", f"{CORE}/endpoints?limit=1"))["metadata"]["resourceVersion"]
    requests = [
        served.request("GET", f"{path}?watch=true&resourceVersion={version}")
        for path in (f"{CORE}/endpoints", f"{DISCOVERY}/endpointslices")
    ]
    with on_core(CLIENT_CORE):
        started = subprocess.Popen(
            [sys.executable, "-m", "bench.support.endpoints_watch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    with started as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(plan(*requests)) + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"ready\n"
        yield process


def become_ready(served: Served, services: int, pods: int) -> tuple[Measured, Completion]:
    """Make all pods ready.

    Return the duration of the patches, and the time when all Endpoints and slices were complete.
    """
    requests = [patch(served, number, each, ready=True) for number in range(services) for each in range(pods)]
    plan = partial(Plan, served.host, served.port, served.authority, services=services, pods=pods)
    with watching(served, plan) as process:
        patches = send(served, requests, 200)
        assert process.stdout is not None
        return patches, msgspec.json.decode(process.stdout.readline(), type=Completion)


def flip(served: Served, count: int) -> Flips:
    """Change the readiness of one pod this number of times, and measure the delays."""
    flips = [patch(served, 0, 0, ready=bool(number % 2)) for number in range(count)]
    return observe(served, flips, ["s-0"] * count)


def observe(served: Served, flips: Sequence[str], names: Sequence[str], first: str = "") -> Flips:
    """Send patches one by one; return the delays until a watcher received each change of the Endpoints `name`."""
    plan = partial(Plan, served.host, served.port, served.authority, flips=flips, names=names, first=first)
    with watching(served, plan) as process:
        assert process.stdout is not None
        return msgspec.json.decode(process.stdout.readline(), type=Flips)


def fill_refreshed(served: Served) -> None:
    """Create the Services that the controllers update together, and the one pod that all these Services select."""
    spec = {"selector": {"group": "all"}, "ports": [{"port": 80, "targetPort": 8080}]}
    bodies = [json.dumps({"metadata": {"name": f"r-{number}"}, "spec": spec}) for number in range(REFRESHED)]
    requests = [served.request("POST", f"{CORE}/services", body) for body in bodies]
    metadata = {"name": "shared", "labels": {"group": "all"}}
    shared = {"metadata": metadata, "spec": {"nodeName": "node-0", "containers": [{"name": "main", "image": "app"}]}}
    requests.append(served.request("POST", f"{CORE}/pods", json.dumps(shared)))
    send(served, requests, 201)


def waiting(served: Served) -> float:
    """Return the number of items in the queue of the endpoints controller."""
    return sum(map(float, DEPTH.findall(served.open("GET", "/metrics").decode())))


def settle(served: Served) -> None:
    """Wait until the controllers are idle."""
    while waiting(served):
        time.sleep(0.2)
    time.sleep(0.5)  # the slices


def flip_each(served: Served, flipped: Sequence[int], first: str = "", *, ready: bool) -> Sequence[float]:
    """Change one pod of each given Service.

    Return the milliseconds until a watcher received each change of Endpoints.
    """
    flips = [patch(served, number, 0, ready=ready) for number in flipped]
    return observe(served, flips, [f"s-{number}" for number in flipped], first).events


def beside_refreshes(served: Served, flipped: Sequence[int]) -> tuple[float, float, float]:
    """Return a change's median delay in ms with a backlog, its median delay when idle, and the minimum backlog."""
    fill_refreshed(served)
    busy: list[float] = []
    quiet: list[float] = []
    left = float(REFRESHED)
    for number in range(ROUNDS):
        refresh = json.loads(status(250, number, ready=True))
        first = served.request("PATCH", f"{CORE}/pods/shared/status", json.dumps(refresh), MERGE)
        for request, into in ((first, busy), ("", quiet)):
            settle(served)
            into += flip_each(served, flipped, request, ready=False)
            left = min(left, waiting(served)) if request else left
            settle(served)
            flip_each(served, flipped, ready=True)
    return median(busy), median(quiet), left


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=200)
    parser.add_argument("--pods", type=int, default=10)
    parser.add_argument("--flips", type=int, default=300)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    services, pods = options.services, options.pods
    # The controller for lost nodes is off, because the pods name nodes that do not exist.
    without = ("--controllers", "*,-pod-garbage-collector-controller")
    with tempfile.TemporaryDirectory() as name, serving(Path(name), *ROOM, *without) as served:
        fill(served, services, pods)
        patches, done = become_ready(served, services, pods)
        flips = flip(served, options.flips)
        busy, quiet, left = beside_refreshes(served, range(min(services, 10)))
    after = max(done.at - patches.ended, 0.0)
    events = sorted(flips.events)
    p50, p99, of_patch = median(events) * 1e3, events[len(events) * 99 // 100] * 1e3, median(flips.patches) * 1e3
    print(f"{patches.answers} status patches in {patches.seconds:.2f} s, complete {after * 1e3:.0f} ms after the last")
    print(f"{done.endpoints_writes} Endpoints and {done.slices_writes} EndpointSlices were written meanwhile")
    print(f"flips took {busy:.1f} ms beside a backlog of {REFRESHED} services, of which {left:.0f} were left at least")
    of = f"{services} services of {pods} pods"
    writes, took = done.endpoints_writes + services, patches.seconds * 1e3
    claims = [
        Claim(f"time until the Endpoints of {of} are complete", after * 1e3, took, 0.05, "ms", at_most=True),
        Claim(
            "number of writes of Endpoints, compared with the number of services",
            writes,
            services,
            7.0,
            "writes",
            at_most=True,
        ),
        Claim(
            "time from a change of readiness to its watch event, compared with its patch",
            p50,
            of_patch,
            4.0,
            "us",
            at_most=True,
        ),
        Claim(
            "time from a change of readiness to its watch event, p99 compared with p50",
            p99,
            p50,
            3.0,
            "us",
            at_most=True,
        ),
        Claim(
            "a change of readiness during 3,000 refreshes, compared with no refreshes",
            busy * 1e3,
            quiet * 1e3,
            2.0,
            "us",
            at_most=True,
        ),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

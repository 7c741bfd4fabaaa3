"""From pods that become ready to the Endpoints and EndpointSlices that say so, through a real server over TLS.

- Pods of many services become ready as fast as the API takes the status patches of 16 clients, service by service. A
  watcher says when every Endpoints object and slice was complete: the limit is the time that the patches took. The
  writes of Endpoints are counted, their creation included.
- Then one pod changes its readiness again and again, each time when every watcher has received the last change: how
  long until a watcher of Endpoints knows is measured against the patch itself, and its 99th percentile against its
  median.

Run `python -m bench.endpoints [--services N] [--pods M] [--flips K] [--check]`; the full size is 1,000 services of
10 pods. Load and watchers run on a core of their own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import msgspec

from bench.endpoints_watch import Completion, Flips, Plan
from bench.https_load import Load, Measured, measure
from bench.report import Claim, report
from bench.served import CLIENT_CORE, Served, on_core, serving

CLIENTS = 16
NAMESPACE = "bench"
NODES = 10
CORE = f"/api/v1/namespaces/{NAMESPACE}"
DISCOVERY = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}"
MERGE = "application/merge-patch+json"


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
    """Return the body of a node."""
    return json.dumps({"metadata": {"name": f"node-{number}", "labels": {"topology.kubernetes.io/zone": "zone-1"}}})


def status(number: int, replica: int, *, ready: bool) -> str:
    """Return the body that makes a pod run, ready or not."""
    ip = f"10.{64 + number // 250}.{number % 250}.{replica + 1}"
    condition = {"type": "Ready", "status": str(ready)}
    fields = {"phase": "Running", "conditions": [condition], "podIP": ip, "podIPs": [{"ip": ip}]}
    return json.dumps({"status": fields})


def send(served: Served, requests: Sequence[str], expect: int) -> Measured:
    """Send each request once, as fast as the clients can."""
    with on_core(CLIENT_CORE):
        return measure(
            Load(served.host, served.port, served.authority, CLIENTS, 3600.0, requests, 0.0, expect, once=True)
        )


def fill(served: Served, services: int, pods: int) -> None:
    """Create everything, with no pod running."""
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
    """Return the request that makes a pod ready, or no longer."""
    path = f"{CORE}/pods/s-{number}-{replica}/status"
    return served.request("PATCH", path, status(number, replica, ready=ready), MERGE)


@contextmanager
def watching(served: Served, plan: Callable[[str, str], Plan]) -> Iterator[subprocess.Popen[bytes]]:
    """Watch from now on while the block runs; `plan` makes of two requests what that is for."""
    version = msgspec.json.decode(served.open("GET", f"{CORE}/endpoints?limit=1"))["metadata"]["resourceVersion"]
    requests = [
        served.request("GET", f"{path}?watch=true&resourceVersion={version}")
        for path in (f"{CORE}/endpoints", f"{DISCOVERY}/endpointslices")
    ]
    with on_core(CLIENT_CORE):
        started = subprocess.Popen(
            [sys.executable, "-m", "bench.endpoints_watch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    with started as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(plan(*requests)) + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"ready\n"
        yield process


def become_ready(served: Served, services: int, pods: int) -> tuple[Measured, Completion]:
    """Make all pods ready; return what the patches took and when everything was complete."""
    requests = [patch(served, number, each, ready=True) for number in range(services) for each in range(pods)]
    plan = partial(Plan, served.host, served.port, served.authority, services=services, pods=pods)
    with watching(served, plan) as process:
        patches = send(served, requests, 200)
        assert process.stdout is not None
        return patches, msgspec.json.decode(process.stdout.readline(), type=Completion)


def flip(served: Served, count: int) -> Flips:
    """Have one pod change its readiness so many times."""
    flips = [patch(served, 0, 0, ready=bool(number % 2)) for number in range(count)]
    plan = partial(Plan, served.host, served.port, served.authority, flips=flips)
    with watching(served, plan) as process:
        assert process.stdout is not None
        return msgspec.json.decode(process.stdout.readline(), type=Flips)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=200)
    parser.add_argument("--pods", type=int, default=10)
    parser.add_argument("--flips", type=int, default=300)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    services, pods = options.services, options.pods
    # Its pods name nodes that do not exist.
    without = ("--controllers", "*,-pod-garbage-collector-controller")
    with tempfile.TemporaryDirectory() as name, serving(Path(name), *without) as served:
        fill(served, services, pods)
        patches, done = become_ready(served, services, pods)
        flips = flip(served, options.flips)
    after = max(done.at - patches.ended, 0.0)
    events = sorted(flips.events)
    p50, p99, of_patch = median(events) * 1e3, events[len(events) * 99 // 100] * 1e3, median(flips.patches) * 1e3
    print(f"{patches.answers} status patches in {patches.seconds:.2f} s, complete {after * 1e3:.0f} ms after the last")
    print(f"{done.endpoints_writes} Endpoints and {done.slices_writes} EndpointSlices were written meanwhile")
    of = f"{services} services of {pods} pods"
    writes, took = done.endpoints_writes + services, patches.seconds * 1e3
    claims = [
        Claim(f"{of}: complete after", after * 1e3, took, 0.05, "ms", at_most=True),
        Claim("writes of Endpoints to services", writes, services, 7.0, "writes", at_most=True),
        Claim("one flip to a watcher, p50, to its patch", p50, of_patch, 4.0, "us", at_most=True),
        Claim("one flip to a watcher, p99 to p50", p99, p50, 3.0, "us", at_most=True),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

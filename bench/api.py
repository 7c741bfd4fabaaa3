"""Measures the API over TLS: rates of reads and writes, compared with the bare server library that sends equal bytes.

Another process, on another core, sends the requests over keep-alive connections. Reads are served from the watch cache
and are never older than an acknowledged write. Creates are durable (SQLite, synchronous=FULL); the server validates and
defaults them, allocates addresses and sets managedFields, while the controllers create the Endpoints and
EndpointSlices.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec

from bench.memory import pod
from bench.report import Claim, report, run
from bench.support.https_load import Load, Measured, measure
from bench.support.served import CLIENT_CORE, Served, bare, on_core, serving

READERS = 32
WRITERS = 16
SECONDS = 3.0
ROUNDS = 3
PODS = 10_000
NAMESPACE = "bench"
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s-{n}"},
    "spec": {"ports": [{"port": 80, "targetPort": 8080}], "selector": {"app": "web"}},
}


def load(
    served: Served, connections: int, requests: Sequence[str], seconds: float = SECONDS, expect: int = 200
) -> Measured:
    """Send `requests` in turn, on this number of connections."""
    with on_core(CLIENT_CORE):
        return measure(Load(served.host, served.port, served.authority, connections, seconds, requests, expect=expect))


def fill(served: Served) -> None:
    """Create the pods that are read, and the nodes of the pods: the server deletes a pod whose node does not exist.

    The pods resemble the pods of a Deployment.
    """
    served.open("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": NAMESPACE}}).encode())
    for name in sorted({pod(number).to_dict()["spec"]["nodeName"] for number in range(PODS)}):
        served.open("POST", "/api/v1/nodes", json.dumps({"metadata": {"name": name}}).encode())
    requests = []
    for number in range(PODS):
        fields = pod(number).to_dict()
        fields["metadata"] = {**fields["metadata"], "namespace": NAMESPACE}
        del fields["metadata"]["uid"], fields["metadata"]["ownerReferences"], fields["status"]
        body = json.dumps(fields)
        requests.append(served.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", body))
    # Each request is sent once, so the load ends with the last request, not after a time.
    measure(Load(served.host, served.port, served.authority, WRITERS, 600.0, requests, 0.0, 201, once=True))


def first_pod(served: Served) -> str:
    """Return the path of one pod."""
    listed = msgspec.json.decode(served.open("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?limit=1"))
    return f"/api/v1/namespaces/{NAMESPACE}/pods/{listed['items'][0]['metadata']['name']}"


def against_bare(served: Served, folder: Path, path: str, connections: int) -> tuple[float, float]:
    """Return requests per second for `path` of our server and of the bare server; both are medians of several rounds.

    The bare server sends the same bytes.
    """
    ours, limits = [], []
    with bare(served, folder, served.open("GET", path)) as other:
        for _ in range(ROUNDS):
            limits.append(load(other, connections, [other.request("GET", path)]).rate)
            ours.append(load(served, connections, [served.request("GET", path)]).rate)
    return median(ours), median(limits)


def creates_to_gets(served: Served) -> tuple[float, float]:
    """Return creates of Services and GETs per second, medians of rounds.

    Rounds of creates and of GETs alternate, because the speed of the disk varies.
    """
    create = served.request("POST", f"/api/v1/namespaces/{NAMESPACE}/services", json.dumps(SERVICE))
    get = served.request("GET", first_pod(served))
    creates, gets = [], []
    for _ in range(ROUNDS):
        gets.append(load(served, READERS, [get]).rate)
        creates.append(load(served, WRITERS, [create], expect=201).rate)
    return median(creates), median(gets)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as served:
        folder = Path(name)
        began = time.perf_counter()
        fill(served)
        print(f"created {PODS} pods in {time.perf_counter() - began:.1f} s")
        get, bare_get = against_bare(served, folder, first_pod(served), READERS)
        some, bare_some = against_bare(served, folder, f"{pods}?limit=500", 8)
        all_, bare_all = against_bare(served, folder, pods, 1)
        creates, gets = creates_to_gets(served)
    claims = [
        Claim("rate of GETs of a pod by 32 clients", get, bare_get, 0.60, "requests/s"),
        Claim("rate of LISTs of 500 pods by 8 clients", some, bare_some, 0.60, "requests/s"),
        Claim("duration of a LIST of 10,000 pods", 1e3 / all_, 1e3 / bare_all, 3.0, "ms", at_most=True),
        Claim("creates of Services by 16 clients, compared with GETs", creates, gets, 0.30, "requests/s"),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

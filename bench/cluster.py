"""Pods on simulated nodes: `python -m bench.cluster [NODES [PODS]]`, by default 1,000 nodes and 10,000 pods.

The benchmark measures how many pods per second are created, scheduled and observed as running. The limit is the rate of
bare writes: clients create each pod, bind it, and patch its status once. The benchmark also measures the memory per
node and pod, the cost of idle nodes, and the start of a server on the log that results. A second simulation gives every
tenth pod a PersistentVolumeClaim and a device; its limit is the rate of the first simulation.
"""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.report import Claim, report, run
from ctrlmgr.testing.served import ServerProcess

CLIENTS = 8
SETTLE = 10.0
"""Seconds after which the nodes' initial writes are finished."""
IDLE = 20.0
"""Seconds for which idle nodes are measured; in this time, each node renews its lease twice."""
_IDLE = 30.0
"""Maximum seconds for which a connection may be idle, because servers close connections that are idle for longer."""
EVERY = 10
"""In the simulation with claims, one of this number of pods has a PersistentVolumeClaim and a device."""
DEVICES = "gpu.example.com"
"""The name of the DRA driver, and of the DeviceClass."""
POD: dict[str, Any] = {
    "spec": {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "example.com/app:1"}]}
}
WAITING = "/api/v1/namespaces/default/pods?fieldSelector=status.phase%21%3DRunning&limit=1"
"""A query for the first pod that is not running; the response is short, so that polling costs the server little."""
WITHOUT = ("--controllers", "*,-pod-garbage-collector-controller,-node-lifecycle-controller")


class Client:
    """A client that keeps one connection open for each thread."""

    def __init__(self, server: ServerProcess) -> None:
        """Create a client that sends requests to `server`."""
        self._server = server
        self._local = local()

    def __call__(self, method: str, path: str, body: Any = None, media_type: str = "application/json") -> Any:
        """Send a request and return the response's body, decoded."""
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            place = urlsplit(self._server.url)
            connection = http.client.HTTPSConnection(place.netloc, context=self._server.trust, timeout=60)
            self._local.connection = connection
        headers = {"Authorization": f"Bearer {self._server.token}", "Content-Type": media_type}
        if time.monotonic() - getattr(self._local, "used", 0.0) > _IDLE:
            connection.close()  # the server may have closed the connection; the next request opens a new one
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        self._local.used = time.monotonic()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text.decode()[:300]}")
        return json.loads(text)


def each(work: Callable[[int], Any], count: int) -> None:
    """Call `work` this number of times, in parallel threads."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        for _ in pool.map(work, range(count)):
            pass


def create(client: Client, number: int) -> None:
    """Create one pod."""
    client("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": f"p{number}"}, **POD})


def create_with_claims(client: Client, number: int) -> None:
    """Create one pod; every tenth pod has a PersistentVolumeClaim and a device of its own."""
    if number % EVERY:
        create(client, number)
        return
    name = f"p{number}"
    size = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "simulated", "resources": size}
    client("POST", "/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": name}, "spec": spec})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    device = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    container = {**POD["spec"]["containers"][0], "resources": {"claims": [{"name": "gpu"}]}}
    pod = {**POD["spec"], "volumes": [volume], "resourceClaims": [device], "containers": [container]}
    client("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": pod})


def create_device_class(client: Client) -> None:
    """Create the DeviceClass and the ResourceClaimTemplate of the pods with devices."""
    selector = {"cel": {"expression": f"device.driver == '{DEVICES}'"}}
    body = {"metadata": {"name": DEVICES}, "spec": {"selectors": [selector]}}
    client("POST", "/apis/resource.k8s.io/v1/deviceclasses", body)
    requests = [{"name": "gpu", "exactly": {"deviceClassName": DEVICES}}]
    template = {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": requests}}}}
    client("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", template)


def count(client: Client, path: str, holds: Callable[[dict[str, Any]], bool]) -> int:
    """Return the number of objects in a collection that match the query."""
    return sum(holds(item) for item in client("GET", path)["items"])


def is_ready(node: dict[str, Any]) -> bool:
    """Return whether a node is ready and schedulable."""
    told = {one["type"]: one["status"] for one in node.get("status", {}).get("conditions", ())}
    return told.get("Ready") == "True" and not node["spec"].get("taints") and bool(node["spec"].get("podCIDR"))


def wait(holds: Callable[[], bool], pause: float) -> None:
    """Wait for a condition."""
    while not holds():
        time.sleep(pause)


def usage(server: ServerProcess) -> tuple[float, float]:
    """Return the CPU seconds of a server's process, and its memory in MiB."""
    process = server._process
    assert process is not None
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    held = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return (int(fields[11]) + int(fields[12])) / 100, held / 1024


class Found(NamedTuple):
    """The results: pods per second, the fraction of a core that idle nodes use, and MiB with nodes and with pods."""

    rate: float
    idle: float
    with_nodes: float
    with_pods: float


def flags(folder: Path, nodes: int) -> tuple[str, ...]:
    """Return the flags of a server with this number of simulated nodes, which have two devices each."""
    file = folder / "nodes.yaml"
    devices = [{"name": "gpu", "count": 2}]
    file.write_text(json.dumps([{"name": "node", "count": nodes, "devices": {DEVICES: devices}}]))
    return ("--database", f"sqlite:///{folder / 'log.db'}", "--nodes", str(file), "--log-level", "error")


def simulated(folder: Path, nodes: int, pods: int, create_pod: Callable[[Client, int], None] = create) -> Found:
    """Schedule and run pods on simulated nodes; return the results."""
    with ServerProcess(folder, *flags(folder, nodes)) as server:
        client = Client(server)
        began = time.monotonic()
        wait(lambda: count(client, "/api/v1/nodes", is_ready) == nodes, 0.5)
        print(f"{nodes} nodes ready in {time.monotonic() - began:.1f} s")
        time.sleep(SETTLE)
        used, held = usage(server)
        time.sleep(IDLE)
        idle = (usage(server)[0] - used) / IDLE
        create_device_class(client)
        began = time.monotonic()
        each(lambda number: create_pod(client, number), pods)
        created = time.monotonic() - began
        wait(lambda: not client("GET", WAITING)["items"], 0.2)
        took = time.monotonic() - began
        print(f"{pods} pods created in {created:.1f} s, all running after {took:.1f} s")
        return Found(pods / took, idle, held, usage(server)[1])


def started(folder: Path, nodes: int) -> float:
    """Start a server on the log of an earlier server in `folder`; return the seconds until `/readyz` passes."""
    began = time.monotonic()
    with ServerProcess(folder, *flags(folder, nodes)):
        return time.monotonic() - began


def bare(folder: Path, pods: int) -> tuple[float, float]:
    """Return how many pods per second clients create, bind and patch, and the MiB of a server without objects."""
    with ServerProcess(
        folder, "--database", f"sqlite:///{folder / 'log.db'}", *WITHOUT, "--log-level", "error"
    ) as server:
        client = Client(server)
        client("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        wait(lambda: bool(client("GET", "/api/v1/namespaces/default/serviceaccounts")["items"]), 0.1)
        held = usage(server)[1]
        place = "/api/v1/namespaces/default/pods"
        patch = "application/strategic-merge-patch+json"

        def work(number: int) -> None:
            create(client, number)
            target = {"kind": "Node", "name": "n"}
            client("POST", f"{place}/p{number}/binding", {"metadata": {"name": f"p{number}"}, "target": target})
            ready = [{"type": "Ready", "status": "True"}]
            client("PATCH", f"{place}/p{number}/status", {"status": {"phase": "Running", "conditions": ready}}, patch)

        began = time.monotonic()
        each(work, pods)
        return pods / (time.monotonic() - began), held


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    given = [int(text) for text in arguments if text.isdecimal()][:2]
    nodes, pods = [*given, *(1000, 10_000)[len(given) :]]
    with tempfile.TemporaryDirectory() as folder:
        found = simulated(Path(folder), nodes, pods)
        print(f"a server on this log is ready after {started(Path(folder), nodes):.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        with_claims = simulated(Path(folder), nodes, pods, create_with_claims)
    with tempfile.TemporaryDirectory() as folder:
        alone, empty = bare(Path(folder), pods)
    a_node, a_pod = (found.with_nodes - empty) * 1024 / nodes, (found.with_pods - found.with_nodes) * 1024 / pods
    print(f"memory: {a_node:.0f} KiB a node, {a_pod:.0f} KiB a pod")
    claims = [
        Claim("pods scheduled and running, by bare writes", found.rate, alone, 0.5, "pods/s"),
        Claim("with claims and devices on every tenth pod, by without", with_claims.rate, found.rate, 0.8, "pods/s"),
        Claim(f"idle, {nodes:,} nodes", found.idle * 1000, 50.0, 1.0, "ms CPU/s", at_most=True),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

"""Runs the controllers of `ctrlmgr run` in this process against a server, and sends requests as a user."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

from ctrlmgr.clock import SystemClock
from ctrlmgr.framework.remote.controller_process import Options, RemoteProcess, choose
from ctrlmgr.settings import Settings
from ctrlmgr.settings.kubeconfig import Access, load
from ctrlmgr.testing.served import ServerProcess
from tests.framework.served import HttpsCluster

APPS = "/apis/apps/v1/namespaces/default/"
PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
NAMES = (*(f"{each}-controller" for each in ("deployment", "replicaset", "statefulset", "daemonset")), "kube-scheduler")
RUNS = f"builtin:{','.join(NAMES)}"
"""The controllers that `ctrlmgr run` runs; the server runs the other controllers and simulated nodes."""
FLAGS = ("--controllers", ",".join(["*", *(f"-{each}" for each in NAMES)]), "--nodes", "2")


def access_to(server: ServerProcess, url: str = "") -> Access:
    """Return the access to a server, either directly or through a proxy at `url`."""
    direct = load([server.kubeconfig])
    return Access(url, direct.namespace, None, "", direct.user) if url else direct


@contextmanager
def running(access: Access, *apps: str) -> Iterator[None]:
    """Run controllers within the block; raise the error with which the controllers ended, if any."""
    chosen = choose(apps)
    options = Options(qps=0, elects=False)
    process = RemoteProcess(access, chosen, Settings(), options, clock=SystemClock(), random=Random(1))
    stop = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            process.run(stop)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="run")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if failures:
        raise failures[0]


class Workloads(HttpsCluster):
    """The requests with which a user creates, changes and deletes workloads.

    Each method of this class waits until the cluster has the expected state.
    """

    def template(self, image: str, *arguments: str) -> dict[str, Any]:
        container = {"name": "c", "image": image, "args": [*arguments]}
        return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}

    def make(self, kind: str, **spec: Any) -> None:
        wanted = {"selector": {"matchLabels": {"app": "web"}}, "template": self.template("nginx:1", "<&>"), **spec}
        body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": wanted}
        self.ask("POST", f"{APPS}{kind.lower()}s", body)

    def change(self, plural: str, spec: Mapping[str, Any]) -> None:
        self.ask("PATCH", f"{APPS}{plural}/web", {"spec": spec}, STRATEGIC)

    def roll(self, plural: str, image: str) -> None:
        self.change(plural, {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})

    def found(self, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.ask("GET", path)["items"]
        return items

    def images(self) -> set[str]:
        pods = [each for each in self.found(PODS) if "deletionTimestamp" not in each["metadata"]]
        return {each["spec"]["containers"][0]["image"] for each in pods}

    def status(self, plural: str) -> dict[str, Any]:
        """Return the status of an object; return an empty status if the status belongs to an earlier generation."""
        obj = self.ask("GET", f"{APPS}{plural}/web")
        status: dict[str, Any] = obj.get("status") or {}
        return status if status.get("observedGeneration") == obj["metadata"]["generation"] else {}

    def deployment_is(self, replicas: int) -> None:
        counts = ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas")

        def holds() -> bool:
            status = self.status("deployments")
            sets = [each["status"] for each in self.found(f"{APPS}replicasets")]
            ready = sorted(each.get("readyReplicas", 0) for each in sets)
            return [status.get(each) for each in counts] == [replicas] * 4 and ready == [0] * (len(sets) - 1) + [
                replicas
            ]

        self.eventually(holds)

    def stateful_set_is(self, replicas: int) -> None:
        counts = ("replicas", "readyReplicas", "updatedReplicas", "currentReplicas")

        def holds() -> bool:
            status = self.status("statefulsets")
            done = status.get("currentRevision") == status.get("updateRevision")
            return done and [status.get(each) for each in counts] == [replicas] * 4

        self.eventually(holds)

    def daemon_set_is(self, nodes: int) -> None:
        counts = ("currentNumberScheduled", "numberReady", "updatedNumberScheduled")
        self.eventually(
            lambda: [self.status("daemonsets").get(each) for each in counts] == [nodes] * 3 and len(self.images()) == 1
        )

    def remove(self, plural: str, **options: Any) -> None:
        self.ask("DELETE", f"{APPS}{plural}/web", {"kind": "DeleteOptions", "apiVersion": "v1", **options})
        self.eventually(lambda: not self.found(f"{APPS}{plural}"))

    def is_empty(self) -> None:
        paths = (PODS, f"{APPS}replicasets", f"{APPS}controllerrevisions")
        self.eventually(lambda: not any(self.found(path) for path in paths))

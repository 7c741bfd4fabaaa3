"""A complete cluster in one thread with virtual time: the engine, the controllers of workloads and nodes, and two
nodes.

Each controller writes as its own user, with the permissions of its own role. The method `until` advances time to the
next due work, until a condition holds.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.resource import Key
from ctrlmgr.authorization.node.node_graph import NodeGraph
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers import registry
from ctrlmgr.controllers.node_ipam import Options as IpamOptions
from ctrlmgr.controllers.scheduler import Options as SchedulerOptions
from ctrlmgr.controllers.simulated_nodes import Options as NodesOptions
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.eventlog.event import Cause, EventType, Fence
from ctrlmgr.informer import Informers
from tests.authorization.bootstrap.controllers import account_of, node_rights, rights_of
from tests.controllers.events.recorded_events import RecordedEvents
from tests.controllers.stage_context import HandContext
from tests.engine.stage import Response, Stage

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
_NAMES = (
    "deployment",
    "replicaset",
    "replicationcontroller",
    "statefulset",
    "daemonset",
    "job",
    "cronjob",
    "disruption",
    "endpoints",
    "endpointslice",
    "namespace",
    "garbage-collector",
    "resourcequota",
    "serviceaccount",
    "root-ca-certificate-publisher",
    "node-ipam",
    "node-lifecycle",
    "taint-eviction",
    "persistentvolume-binder",
    "kube-scheduler",
    "simulated-nodes",
)
_ABOUT = {
    "pods": "/api/v1",
    "nodes": "/api/v1",
    "services": "/api/v1",
    "endpoints": "/api/v1",
    "namespaces": "/api/v1",
    "configmaps": "/api/v1",
    "resourcequotas": "/api/v1",
    "replicationcontrollers": "/api/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "controllerrevisions": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "cronjobs": "/apis/batch/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "priorityclasses": "/apis/scheduling.k8s.io/v1",
    "runtimeclasses": "/apis/node.k8s.io/v1",
    "secrets": "/api/v1",
    "podtemplates": "/api/v1",
    "persistentvolumes": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "storageclasses": "/apis/storage.k8s.io/v1",
    "volumeattachments": "/apis/storage.k8s.io/v1",
    "csidrivers": "/apis/storage.k8s.io/v1",
}
_CLUSTERED = (
    "nodes",
    "namespaces",
    "priorityclasses",
    "runtimeclasses",
    "volumeattachments",
    "csidrivers",
    "persistentvolumes",
    "storageclasses",
)
Thing = dict[str, Any]


class Cluster(Stage):
    """A cluster with the namespace `a`, and with the nodes `node-1` and `node-2`, which are ready."""

    def __init__(self, **nodes: Any) -> None:
        super().__init__()
        self.told = RecordedEvents()
        self.graph = NodeGraph()
        self.cacher.feed(self.graph)
        self.informers = Informers(self.log, self.feed, clock=self.clock)
        self._options = {
            "node-ipam-controller": IpamOptions(allocate_node_cidrs=True),
            "kube-scheduler": SchedulerOptions(simulated_seed=1),
            "simulated-nodes-controller": NodesOptions(**{"nodes": "2", **nodes}),
        }
        known = {alias: each for each in registry.ALL for alias in (each.name, *each.aliases)}
        self.controllers = [self._build(known.get(name) or known[f"{name}-controller"]) for name in _NAMES]
        self.informers.sync()
        for controller in self.controllers:
            controller.start()
        for name in ("default", "kube-node-lease", "a"):
            self.namespace(name)
        self.until(lambda: all(self.is_ready(each) for each in self.all("nodes")) and len(self.all("nodes")) > 1)
        self.told.events.clear()

    def _build(self, descriptor: Any) -> Any:
        user = account_of(descriptor.name)
        client = EngineClient(
            self.engine,
            self._run,
            Requester(user.name, user.groups),
            rights=rights_of(user),
            rights_of=node_rights(self.graph),
        )
        context = HandContext(
            informers=self.informers,
            event_log=self.log,
            clock=self.clock,
            random=Random(descriptor.name),
            writer=lambda descriptor: client,
            recorded=self.told,
            engine=self.engine,
            apiserver=EngineClient(self.engine, self._run, Requester("system:apiserver")),
            root_ca="a certificate",
        )
        return descriptor.build(context, self._options.get(descriptor.name, descriptor.options()))

    def _run(self, operation: Operation[Any], cause: Cause | None = None, fence: Fence | None = None) -> Any:
        return self.driver.run(operation)

    # Time

    def work(self) -> None:
        """Run all controllers until no work is due."""
        for _ in range(500):
            self.feed.catch_up()
            while self.informers.step():
                pass
            worked = [self._works(each) for each in self.controllers]
            if not any(worked):
                return
        pytest.fail("it does not become idle")

    def _works(self, controller: Any) -> bool:
        worked = False
        while controller.process_next(timeout=0):
            worked = True
        return worked

    def pass_by(self, seconds: float) -> None:
        """Advance the time, and run the work that becomes due."""
        end = self.clock.monotonic() + seconds
        self.work()
        while (now := self.clock.monotonic()) < end:
            due = [each.queue.next_ready_in() for each in self.controllers]
            step = min([end - now, *(max(each, 0.001) for each in due if each is not None)])
            self.clock.step(step)
            self.work()

    def until(self, holds: Callable[[], object], within: float = 120.0) -> None:
        """Advance the time until a condition holds."""
        end = self.clock.monotonic() + within
        self.work()
        while not holds():
            assert self.clock.monotonic() < end, f"it does not come to be within {within:g} s"
            self.pass_by(0.25)

    # Requests

    def path(self, kind: str, name: str = "", namespace: str = "a") -> str:
        """Return the URL path of a kind's objects, of one object, or, for a name of the form `NAME/PART`, of a
        subresource.
        """
        where = "" if kind in _CLUSTERED else f"/namespaces/{namespace}"
        return f"{_ABOUT[kind]}{where}/{kind}" + (f"/{name}" if name else "")

    def make(self, kind: str, body: Thing, namespace: str = "a") -> Thing:
        """Create something."""
        return self._ok(self.send("POST", self.path(kind, "", namespace), body))

    def get(self, kind: str, name: str, namespace: str = "a") -> Thing:
        """Read an existing object."""
        return self._ok(self.send("GET", self.path(kind, name, namespace)))

    def find(self, kind: str, name: str, namespace: str = "a") -> Thing | None:
        """Read an object, or return None if it does not exist."""
        answer = self.send("GET", self.path(kind, name, namespace))
        return None if answer.code == 404 else self._ok(answer)

    def all(self, kind: str, selector: str = "", namespace: str = "a") -> list[Thing]:
        """Return the objects of a kind that match a label selector."""
        query = {"labelSelector": selector} if selector else {}
        found: list[Thing] = self._ok(self.send("GET", self.path(kind, "", namespace), query=query))["items"]
        return found

    def patch(self, kind: str, name: str, body: Thing, media_type: str = MERGE) -> Thing:
        """Patch an object, or, for a name of the form `NAME/PART`, a subresource of the object."""
        return self._ok(self.send("PATCH", self.path(kind, name), body, media_type=media_type))

    def replace(self, kind: str, name: str, body: Thing) -> Thing:
        """Replace an object or a subresource of the object."""
        return self._ok(self.send("PUT", self.path(kind, name), body))

    def delete(self, kind: str, name: str = "", **options: Any) -> Thing:
        """Delete an object, or all objects of a kind if the name is empty."""
        return self._ok(self.send("DELETE", self.path(kind, name), options or None))

    def _ok(self, answer: Response) -> Thing:
        assert answer.code in (200, 201, 202), answer.body
        body: Thing = answer.body
        return body

    # State of pods.

    def pods(self, selector: str = "") -> list[Thing]:
        """Return the pods that are not terminating."""
        return [each for each in self.all("pods", selector) if not each["metadata"].get("deletionTimestamp")]

    def history(self, kind: str, name: str, namespace: str = "a") -> list[Thing]:
        """Return every version of an object that a watch would have sent, except deletions."""
        key = Key(namespace, name)
        events = self.log.events_after(0, limit=1_000_000)
        found = [each for each in events if each.resource.plural == kind and each.object.key == key]
        return [each.object.to_dict() for each in found if each.type != EventType.DELETED]

    def phase(self, name: str) -> str:
        """Return the phase of a pod."""
        return str(self.get("pods", name)["status"].get("phase"))

    def is_ready(self, thing: Thing) -> bool:
        """Return whether a pod or a node is ready."""
        return condition(thing, "Ready").get("status") == "True"

    def ready(self, selector: str = "") -> list[Thing]:
        """Return the pods that are ready and match a label selector."""
        return [each for each in self.pods(selector) if self.is_ready(each)]


def condition(thing: Thing, type_: str) -> Thing:
    """Return a condition of an object; return an empty condition if the object does not have it."""
    found = thing.get("status", {}).get("conditions") or ()
    return next((each for each in found if each["type"] == type_), {})


def container(script: str = "", name: str = "c", **more: Any) -> Thing:
    """Return a container that pauses, or that runs a shell script if one is given."""
    if not script:
        return {"name": name, "image": "registry.k8s.io/pause:3.10.1", **more}
    return {"name": name, "image": "busybox:1.36", "command": ["/bin/sh", "-c", script], **more}


def pod(name: str, *containers: Thing, labels: dict[str, str] | None = None, **spec: Any) -> Thing:
    """Return a pod."""
    metadata = {"name": name, "labels": labels or {}}
    return {"metadata": metadata, "spec": {"containers": [*containers] or [container()], **spec}}


def template(*containers: Thing, app: str = "web", **spec: Any) -> Thing:
    """Return the pod template of an app."""
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [*containers] or [container()], **spec}}


def workload(name: str, *containers: Thing, app: str = "web", **spec: Any) -> Thing:
    """Return the spec of a workload, with a selector and a pod template."""
    spec = {"selector": {"matchLabels": {"app": app}}, "template": template(*containers, app=app), **spec}
    return {"metadata": {"name": name, "labels": {"app": app}}, "spec": spec}


def running(cluster: Cluster, body: Thing) -> Thing:
    """Create a pod and wait until the pod runs."""
    name = cluster.make("pods", body)["metadata"]["name"]
    cluster.until(lambda: cluster.phase(name) == "Running")
    return cluster.get("pods", name)


def terminated(pod: Thing, field: str = "containerStatuses") -> Thing:
    """Return the termination state of a pod's first container."""
    found: Thing = pod["status"][field][0]["state"].get("terminated") or {}
    return found

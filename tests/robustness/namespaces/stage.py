"""A namespace with objects of many kinds, and the controllers that delete the objects, in a process that can crash at
any append.

No thread runs in the background: a test runs the process and advances its clock. Users and kubelets write through a
separate engine that never crashes. The process, users and kubelets share one log in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers import garbage_collector
from ctrlmgr.controllers import namespace as namespaces
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.controllers.garbage_collector import controller as garbage_collector_controller
from ctrlmgr.controllers.namespace import controller as namespace_controller
from ctrlmgr.engine.blocking_driver import Driver
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import LogClosed
from ctrlmgr.eventlog import Author, Event, EventType, Fence, Proposal
from ctrlmgr.eventlog.event import Cause
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import Informers
from ctrlmgr.testing import FakeClock
from tests.controllers.stage_context import HandContext
from tests.engine.stage import Stage

DOOMED = "doomed"
GRACE = 5.0
HOLD = "example.com/hold"
CONTROLLERS = "system:controller:"
FOR_EVER = 1_000_000
_MERGE = "application/merge-patch+json"
_APPS = "/apis/apps/v1/namespaces/{}"
_CORE = "/api/v1/namespaces/{}"


class NamespaceUsers:
    """The event log, the clock of the log, and the users that write to it."""

    def __init__(self, objects: Sequence[Object] = ()) -> None:
        """Begin with `objects`."""
        self.clock = FakeClock()
        self.log = MemoryEventLog(clock=self.clock, random=Random(1))
        if objects:
            self.log.append([Proposal(EventType.ADDED, obj, 0) for obj in objects], author=Author("before"))
        self.people = stage(self)
        self.began = self.log.head().revision

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.people.send(method, path, body, media_type=_MERGE if method == "PATCH" else "application/json")
        assert answer.code in (200, 201, 202), answer.body
        return answer.body

    def objects(self) -> list[Object]:
        return self.log.snapshot().objects

    def events(self) -> Sequence[Event]:
        """Return the events since the beginning."""
        return self.log.events_after(self.began, limit=100_000)

    def doom(self) -> None:
        self.ask("DELETE", f"/api/v1/namespaces/{DOOMED}")

    def end_pods(self) -> None:
        """Remove the pods whose containers have ended, as their kubelets would."""
        for name in ("running-0", "running-1"):
            self.ask("DELETE", f"/api/v1/namespaces/{DOOMED}/pods/{name}", {"gracePeriodSeconds": 0})

    def release(self) -> None:
        """Remove the finalizers of all objects that still have them."""
        for path in _HELD:
            if self.people.send("GET", path.format(DOOMED)).code == 200:
                self.ask("PATCH", path.format(DOOMED), {"metadata": {"finalizers": None}})


def stage(cluster: NamespaceUsers) -> Stage:
    """Return a cluster for a scenario."""
    made = Stage(log=cluster.log, seed=7)
    made.clock = cluster.clock
    return made


class Process:
    """The controllers of one process, which can crash.

    The process crashes before its append number `lives` + 1; if `late` is set, it crashes right after this append.
    """

    def __init__(self, cluster: NamespaceUsers, lives: int = FOR_EVER, *, late: bool = False) -> None:
        """Start a process that knows only the data in the log."""
        self._scene = cluster
        self._lives = lives
        self._late = late
        self.appends = 0
        stage_ = stage(cluster)
        self._driver = _Driver(self, stage_)
        self.informers = Informers(cluster.log, stage_.feed, clock=cluster.clock)

        def client(descriptor: ControllerDescriptor[Any]) -> EngineClient:
            return EngineClient(stage_.engine, self._run, Requester(f"{CONTROLLERS}{descriptor.name}"))

        context = HandContext(
            informers=self.informers,
            event_log=cluster.log,
            engine=stage_.engine,
            clock=cluster.clock,
            random=Random(1),
            writer=client,
        )
        self._controllers = [
            namespace_controller.build(context, namespaces.Options(namespace_deletion_grace=GRACE)),
            garbage_collector_controller.build(context, garbage_collector.Options()),
        ]
        self.informers.sync()

    def _run(self, operation: Operation[Any], cause: Cause | None = None, fence: Fence | None = None) -> Any:
        return self._driver.run(operation)

    def appending(self) -> None:
        """Crash if the process has made its allowed number of appends."""
        if self.appends >= self._lives and not self._late:
            raise LogClosed("this process is no more")

    def appended(self) -> None:
        """Count an append, and crash if the process has made its allowed number of appends."""
        self.appends += 1
        if self.appends > self._lives:
            raise LogClosed("this process is no more")

    def work(self) -> bool:
        """Run one step of a controller, the namespace controller first; return False if no work is due."""
        while self.informers.step():
            pass
        return any(controller.process_next(timeout=0) for controller in self._controllers)

    def settle(self) -> None:
        """Run until no work is due and the grace period of a namespace has passed."""
        for _ in range(2):
            while self.work():
                pass
            self._scene.clock.step(GRACE)
        while self.work():
            pass


class _Driver(Driver):
    """The event log as one process uses it; each append can crash the process."""

    def __init__(self, process: Process, stage_: Stage) -> None:
        super().__init__(stage_.log, stage_.feed, stage_.cacher, patience=0)
        self._process = process

    def _append(self, command: Any) -> Any:
        self._process.appending()
        events = super()._append(command)
        self._process.appended()
        return events


# The initial objects.

_HELD = (
    f"{_CORE}/configmaps/held",
    f"{_CORE}/pods/held",
    f"{_CORE}/services/held",
    f"{_APPS}/deployments/held",
)


@cache
def beginning() -> tuple[Object, ...]:
    """Return objects in two namespaces with equal content, one of which is deleted, and cluster-scoped objects."""
    cluster = NamespaceUsers()
    cluster.ask("POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}})
    for namespace in (DOOMED, "other"):
        cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        _fill(cluster, namespace)
    return tuple(cluster.objects())


def _fill(cluster: NamespaceUsers, namespace: str) -> None:
    core, apps = _CORE.format(namespace), _APPS.format(namespace)

    def create(path: str, name: str, **fields: Any) -> Any:
        metadata = {"name": name, **fields.pop("metadata", {})}
        return cluster.ask("POST", path, {"metadata": metadata, **fields})

    for number in range(9):
        create(f"{core}/configmaps", f"config-{number}", data={"a": "b"})
        create(f"{core}/secrets", f"secret-{number}")
    for number in range(2):
        create(f"{core}/serviceaccounts", f"account-{number}")
        create(f"{core}/services", f"service-{number}", spec={"ports": [{"port": 80}], "type": "NodePort"})
        create(f"{core}/endpoints", f"service-{number}")
        create(f"{core}/pods", f"running-{number}", spec=_pod(nodeName="node-1"))
        create(f"{core}/pods", f"waiting-{number}", spec=_pod())
    create(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", "lease")
    create(
        f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", "slice", addressType="IPv4", endpoints=[]
    )
    held = {"finalizers": [HOLD]}
    create(f"{core}/configmaps", "held", metadata=held)
    create(f"{core}/pods", "held", metadata=held, spec=_pod())
    create(f"{core}/services", "held", metadata=held, spec={"ports": [{"port": 80}]})
    create(f"{apps}/deployments", "held", metadata=held, spec=_replicas("held"))
    deployment = create(f"{apps}/deployments", "app", spec=_replicas("app"))
    owned = {"ownerReferences": [_owner(deployment, "Deployment")]}
    replica_set = create(f"{apps}/replicasets", "app-1", metadata=owned, spec=_replicas("app"))
    owned = {"ownerReferences": [_owner(replica_set, "ReplicaSet")]}
    for number in range(3):
        create(f"{core}/configmaps", f"owned-{number}", metadata=owned)


def _pod(**spec: Any) -> Any:
    return {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 30, **spec}


def _replicas(app: str) -> Any:
    labels = {"app": app}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}


def _owner(obj: Any, kind: str) -> Any:
    name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": True}

"""A cluster with several controllers that tests run step by step; methods act as the scheduler and the kubelets.

Time advances only when a test advances the clock. If `killed_at_every_write` is set, the process of all controllers is
replaced after each write, so that no controller can rely on state in memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.eventlog import EventType
from ctrlmgr.eventlog.event import Cause, Fence
from ctrlmgr.informer import Informers
from ctrlmgr.manager import Controller
from tests.authorization.bootstrap.controllers import rights_of
from tests.controllers.stage_context import HandContext
from tests.engine.stage import Response, Stage

MERGE = "application/merge-patch+json"
SYSTEM = "system:serviceaccount:kube-system:"
NAMESPACE = "shop"

Maker = Callable[["WorkloadStage"], Controller]


class ProcessKilled(BaseException):
    """Raised to simulate that the process was killed."""


class EventList:
    """A recorder that stores its Events."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def event(self, subject: Object | ObjectReference, type: str, reason: str, message: str, **newer: object) -> None:
        self.all.append(f"{reason}: {message}")


class WorkloadStage(Stage):
    """`makers` are functions that create the controllers; see the module's docstring."""

    def __init__(self, *makers: Maker, killed_at_every_write: bool = False) -> None:
        super().__init__()
        self.random = Random(1)
        self.recorded = EventList()
        self._makers = makers
        self._kill = killed_at_every_write
        self._nodes = 0
        self.namespace(NAMESPACE)
        self.start()

    def start(self) -> None:
        """Start all controllers, or restart all controllers with only the state in the log."""
        self.informers = Informers(self.log, self.feed, clock=self.clock)
        self.controllers = [make(self) for make in self._makers]
        self.informers.sync()
        for controller in self.controllers:
            controller.start()

    @property
    def context(self) -> HandContext:
        """A controller context in which each controller writes with its own user and permissions."""
        return HandContext(
            informers=self.informers,
            event_log=self.log,
            engine=self.engine,
            clock=self.clock,
            random=self.random,
            writer=lambda descriptor: self._client(descriptor.as_user),
            recorded=self.recorded,
        )

    def _client(self, user: User) -> EngineClient:
        return EngineClient(self.engine, self._run, Requester(user.name), rights=rights_of(user))

    def _run(self, operation: Operation[Any], cause: Cause | None = None, fence: Fence | None = None) -> Any:
        before = self.log.head().revision
        answer = self.driver.run(operation)
        if self._kill and self.log.head().revision > before:
            raise ProcessKilled
        return answer

    def hear(self) -> None:
        self.feed.catch_up()
        while self.informers.step():
            pass

    def work(self, at_most: int = 5_000) -> None:
        """Run the controllers in random order until no controller has due work."""
        for _ in range(at_most):
            if not self.one_step():
                return
        pytest.fail("they do not come to rest")

    def one_step(self) -> bool:
        """Let one controller reconcile one key; return False if no controller has due work."""
        try:
            return self._step()
        except ProcessKilled:
            self.start()
            return True

    def _step(self) -> bool:
        self.hear()
        order = self.random.sample(self.controllers, len(self.controllers))
        return any(controller.process_next(timeout=0) for controller in order)

    def pass_by(self, seconds: float) -> None:
        self.clock.step(seconds)
        self.work()

    # Requests of users.

    def path(self, resource: str, name: str = "", part: str = "") -> str:
        group = "/api/v1" if "/" not in resource else f"/apis/{resource.rpartition('/')[0]}"
        plural = resource.rpartition("/")[2]
        return "/".join(each for each in (f"{group}/namespaces/{NAMESPACE}/{plural}", name, part) if each)

    def create(self, resource: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.send("POST", self.path(resource), body)
        assert answer.code == 201, answer.body
        created: dict[str, Any] = answer.body
        return created

    def get(self, resource: str, name: str) -> dict[str, Any]:
        answer = self.send("GET", self.path(resource, name))
        assert answer.code == 200, answer.body
        found: dict[str, Any] = answer.body
        return found

    def all(self, resource: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.send("GET", self.path(resource)).body["items"]
        return items

    def patch(self, resource: str, name: str, body: Mapping[str, Any], part: str = "") -> Response:
        answer = self.send("PATCH", self.path(resource, name, part), body, media_type=MERGE)
        assert answer.code == 200, answer.body
        return answer

    def delete(self, resource: str, name: str, **options: Any) -> None:
        answer = self.send("DELETE", self.path(resource, name), options or None)
        assert answer.code in (200, 202), answer.body

    # Actions of schedulers and kubelets.

    def pods(self, *, going: bool | None = False, **labels: str) -> list[dict[str, Any]]:
        """Return the pods with these labels: only terminating pods, only other pods, or (None) all pods."""
        found = self.all("pods")
        return [
            pod
            for pod in found
            if (going is None or ("deletionTimestamp" in pod["metadata"]) == going)
            and labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]

    def bind(self, name: str, node: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": {"kind": "Node", "name": node},
        }
        assert self.send("POST", self.path("pods", name, "binding"), body).code == 201

    def report(
        self, pod: Mapping[str, Any], phase: str = "Running", *, ready: bool | None = None, node: str = ""
    ) -> None:
        """Bind a pod if necessary, and write its status as its kubelet would; a running pod is ready by default."""
        name = pod["metadata"]["name"]
        if not pod["spec"].get("nodeName"):
            self._nodes += 1
            self.bind(name, node or f"node-{self._nodes % 3}")
        is_ready = phase == "Running" if ready is None else ready
        now = self.now()
        condition = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": now}
        status = {"phase": phase, "conditions": [condition], "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
        self.patch("pods", name, {"status": status}, "status")

    def run_all(self) -> None:
        """Start pending pods and remove terminating pods, as the kubelets of all nodes do."""
        for pod in self.pods():
            if pod["status"]["phase"] == "Pending":
                self.report(pod)
        self.end_all()

    def end_all(self) -> None:
        for pod in self.pods(going=True):
            self.delete("pods", pod["metadata"]["name"], gracePeriodSeconds=0)

    def settle(self, rounds: int = 200) -> None:
        """Run controllers and kubelets in turn until nothing changes any more."""
        for _ in range(rounds):
            before = self.log.head().revision
            self.work()
            self.run_all()
            if self.log.head().revision == before:
                return
        pytest.fail("nothing comes to rest")

    def now(self) -> str:
        return format_time_seconds(self.clock.now())

    # Checks of the log afterwards.

    def written(self) -> list[str]:
        """Return the events that controllers wrote, as `CREATED pods/web-1`."""
        events = self.log.events_after(0, limit=100_000)
        return [
            f"{EventType(each.type).name} {each.object.resource}/{each.key.name}"
            for each in events
            if each.actor.startswith(SYSTEM)
        ]

    def states(self, *resources: Resource) -> Iterator[Mapping[Resource, Mapping[Key, Object]]]:
        """Yield the objects of some resources as they are after each event of the log."""
        there: dict[Resource, dict[Key, Object]] = defaultdict(dict)
        for event in self.log.events_after(0, limit=100_000):
            if event.object.resource in resources:
                if event.type is EventType.DELETED:
                    there[event.object.resource].pop(event.key, None)
                else:
                    there[event.object.resource][event.key] = event.object
                yield there


def names(objects: Sequence[Mapping[str, Any]]) -> list[str]:
    return [each["metadata"]["name"] for each in objects]


def template(labels: Mapping[str, str], image: str = "registry.example/app:1", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": dict(labels)}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def pods_of(there: Mapping[Resource, Mapping[Key, Object]]) -> list[Object]:
    return [*there[PODS].values()]

"""A cluster with one controller, which tests run step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.authorization.node.node_graph import NodeGraph
from ctrlmgr.client import EngineClient, LogClient
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.eventlog import Author, EventType
from ctrlmgr.eventlog.event import Cause, Fence
from ctrlmgr.informer import Informers
from ctrlmgr.manager import Controller
from tests.authorization.bootstrap.controllers import NamedRights, node_rights
from tests.engine.stage import Response, Stage

MERGE = "application/merge-patch+json"


class WorkedStage(Stage):
    """`work` runs the controller until it is idle; events written by the controller have the author `ACTOR`."""

    ACTOR = "system:controller:tested"

    def __init__(
        self,
        make: Callable[[WorkedStage], Controller],
        *,
        caller: Callable[[Call], Reply] | None = None,
        kinds: Kinds | None = None,
    ) -> None:
        super().__init__(caller=caller, kinds=kinds)
        self.random = Random(1)
        rights = NamedRights(lambda: self.controller.name)
        graph = NodeGraph()
        self.engine.cacher.feed(graph)
        self.engine_client = EngineClient(
            self.engine, self._run, Requester(self.ACTOR), rights=rights, rights_of=node_rights(graph)
        )
        self.apiserver_client = EngineClient(self.engine, self._run, Requester("system:apiserver"))
        self.log_client = LogClient(
            self.log, author=Author(self.ACTOR), clock=self.clock, new_uid=lambda: new_uid(self.random)
        )
        self._make = make
        self.start()

    def start(self) -> None:
        """Start the controller, or restart it with only the state in the log."""
        self.informers = Informers(self.log, self.feed, clock=self.clock)
        self.controller = self._make(self)
        self.informers.sync()
        self.controller.start()

    def _run(self, operation: Operation[Any], cause: Cause | None = None, fence: Fence | None = None) -> Any:
        return self.driver.run(operation)

    def hear(self) -> None:
        """Deliver the log's events to the caches, but do not run the controller."""
        self.feed.catch_up()
        while self.informers.step():
            pass

    def work(self) -> None:
        """Run the controller until no work is due."""
        for _ in range(10_000):
            self.hear()
            if not self.controller.process_next(timeout=0):
                return
        pytest.fail("it does not become idle")

    def pass_by(self, seconds: float) -> None:
        self.clock.step(seconds)
        self.work()

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.send("POST", path, body)
        assert answer.code == 201, answer.body
        created: dict[str, Any] = answer.body
        return created

    def patch(self, path: str, body: dict[str, Any]) -> Response:
        answer = self.send("PATCH", path, body, media_type=MERGE)
        assert answer.code == 200, answer.body
        return answer

    def delete(self, path: str, **options: Any) -> None:
        answer = self.send("DELETE", path, options or None)
        assert answer.code in (200, 202), answer.body

    def stored(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self.log.get(resource, Key(namespace, name))

    def names(self, resource: Resource, namespace: str | None = None) -> list[str]:
        return [each.name for each in self.log.snapshot(resource, namespace=namespace).objects]

    def written(self) -> list[tuple[str, str]]:
        """Return the controller's writes, as tuples (type such as ADDED, namespace/name)."""
        events = self.log.events_after(0, limit=100_000)
        return [(EventType(each.type).name, str(each.key)) for each in events if each.actor == self.ACTOR]


def work_all(stage: WorkedStage, controllers: Sequence[Controller]) -> None:
    """Run controllers in turn until no controller has due work."""
    busy = True
    while busy:
        busy = False
        for each in controllers:
            stage.hear()
            while each.process_next(timeout=0):
                busy = True
                stage.hear()

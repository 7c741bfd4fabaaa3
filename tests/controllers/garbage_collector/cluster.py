"""A cluster with the garbage collector, which tests run step by step; objects are ConfigMaps by default."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.resource import Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.garbage_collector import DESCRIPTOR, Options
from ctrlmgr.controllers.garbage_collector.controller import build
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import LogClosed
from ctrlmgr.eventlog.event import Cause, Fence
from ctrlmgr.informer import Informers
from ctrlmgr.manager import Controller
from tests.authorization.bootstrap.controllers import rights_of
from tests.controllers.events.recorded_events import RecordedEvents
from tests.controllers.stage_context import HandContext
from tests.engine.stage import Stage

CONFIG_MAPS = Resource("", "configmaps")
MERGE = "application/merge-patch+json"


COLLECTOR = DESCRIPTOR.as_user


class Cluster:
    """A cluster with the namespaces `a` and `b`, and the garbage collector."""

    def __init__(self, *, seed: int = 1) -> None:
        self.stage = Stage(seed=seed)
        for name in ("a", "b"):
            self.stage.namespace(name)
        self.start()

    def start(self) -> None:
        """Start the garbage collector, or restart it with only the state in the log."""
        self.lives = 1_000_000
        """The number of writes after which the process crashes."""
        self.informers = Informers(self.stage.log, self.stage.feed, clock=self.stage.clock)
        self.controller = self._controller()
        self.on_change: Callable[[], None] = lambda: None
        self.informers.informer(CONFIG_MAPS).add_handler(lambda change: self.on_change())
        self.informers.sync()

    def _controller(self) -> Controller:
        self.recorded = RecordedEvents()
        client = EngineClient(self.stage.engine, self._run, Requester(COLLECTOR.name), rights=rights_of(COLLECTOR))
        context = HandContext(
            informers=self.informers,
            event_log=self.stage.log,
            engine=self.stage.engine,
            clock=self.stage.clock,
            random=Random(1),
            writer=lambda descriptor: client,
            recorded=self.recorded,
        )
        return build(context, Options())

    def _run(self, operation: Operation[Any], cause: Cause | None = None, fence: Fence | None = None) -> Any:
        if not self.lives:
            raise LogClosed("this process is no more")
        self.lives -= 1
        return self.stage.driver.run(operation)

    def create(self, path: str, *owners: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Create the object at `path`, owned by `owners`, and return an owner reference to the created object."""
        collection, _, name = path_of(path).rpartition("/")
        metadata = {"name": name, "ownerReferences": list(owners), **fields.pop("metadata", {})}
        answer = self.stage.send("POST", collection, {"metadata": metadata, **fields})
        assert answer.code == 201, answer.body
        return reference(answer.body)

    def delete(self, path: str, propagation: str = "Background") -> None:
        answer = self.stage.send("DELETE", path_of(path), {"propagationPolicy": propagation})
        assert answer.code == 200, answer.body

    def get(self, path: str) -> Any:
        answer = self.stage.send("GET", path_of(path))
        return answer.body if answer.code == 200 else None

    def owners(self, path: str) -> list[str]:
        """Return the names of the owners of an object."""
        return [owner["name"] for owner in self.get(path)["metadata"].get("ownerReferences", [])]

    def patch(self, path: str, **metadata: Any) -> None:
        answer = self.stage.send("PATCH", path_of(path), {"metadata": metadata}, media_type=MERGE)
        assert answer.code == 200, answer.body

    def head(self) -> int:
        return self.stage.log.head().revision

    def names(self, namespace: str = "a") -> list[str]:
        """Return the ConfigMaps of a namespace."""
        found = self.stage.send("GET", f"/api/v1/namespaces/{namespace}/configmaps").body["items"]
        return [each["metadata"]["name"] for each in found]

    def hear(self) -> None:
        """Deliver the log's events to the caches, but do not run the controller."""
        while self.informers.step():
            pass

    def process_one(self) -> None:
        """Let the controller process one object."""
        assert self.controller.process_next(timeout=0)

    def settle(self) -> None:
        """Run the controller until no work is due."""
        for _ in range(20_000):
            self.hear()
            if not self.controller.process_next(timeout=0):
                return
        pytest.fail("it does not become idle")

    def pass_by(self, seconds: float) -> None:
        self.stage.clock.step(seconds)
        self.settle()


def path_of(path: str) -> str:
    """Return the URL of the ConfigMap `name` or `namespace/name`; a URL is returned unchanged."""
    if path.startswith("/"):
        return path
    namespace, slash, name = path.rpartition("/")
    return f"/api/v1/namespaces/{namespace if slash else 'a'}/configmaps/{name}"


def reference(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj["metadata"]
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"]}


def blocking(owner: dict[str, Any]) -> dict[str, Any]:
    return {**owner, "blockOwnerDeletion": True}


def absent(name: str = "gone", **changes: str) -> dict[str, Any]:
    """Return a reference to a ConfigMap that never existed."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": f"uid-of-{name}", **changes}

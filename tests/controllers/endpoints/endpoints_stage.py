"""The controllers of Endpoints and EndpointSlices, in a simulated process that a test can kill.

The test decides when caches are updated, which controller runs, and which faults occur; no thread runs in the
background.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

from ctrlmgr.admission.plugin_registry import default_chain
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, PODS, SERVICES, Key, Resource, Revision
from ctrlmgr.client import ControllerRunner, EngineClient, InformerState
from ctrlmgr.clock import Clock
from ctrlmgr.controllers import endpoints, endpointslice, endpointslice_mirroring
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.eventlog.event import Author, Cause, Event, EventType, Fence, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import EventWindow, Informers
from ctrlmgr.manager import Controller
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_namespace, a_node
from ctrlmgr.workqueue import CHANGE, WorkQueue
from tests.authorization.bootstrap.controllers import rights_of
from tests.controllers.stage_context import HandContext
from tests.engine.stage import builtin_kinds

CONTENT = (SERVICES, PODS, ENDPOINTS, ENDPOINT_SLICES)
CLIENT = Author("client")
_TOO_MANY = 10_000
"""The number of rounds after which the test assumes that controllers write in an endless loop."""


class ProcessKilled(BaseException):
    """Raised to simulate that the process was killed right after an append."""


class FragileLog(MemoryEventLog):
    """A log that kills the process after a number of the controllers' appends; 0 means that the log never kills the
    process.
    """

    kill_after = 0
    appended = 0

    def append(
        self,
        proposals: Sequence[Proposal],
        *,
        author: Author,
        fence: Fence | None = None,
        cause: Cause | None = None,
    ) -> Sequence[Event]:
        events = super().append(proposals, author=author, fence=fence, cause=cause)
        if author != CLIENT:
            self.appended += 1
            if self.appended == self.kill_after:
                raise ProcessKilled
        return events


class DisorderedQueue(WorkQueue[Key]):
    """A queue that holds back added keys until the test selects the next key."""

    def __init__(self, name: str, *, clock: Clock) -> None:
        super().__init__(name, clock=clock)
        self._held: dict[Key, set[Revision]] = {}

    def add(self, item: Key, triggers: Iterable[Revision] = (), *, priority: int = CHANGE) -> None:
        self._held.setdefault(item, set()).update(triggers)

    def release(self, pick: int) -> None:
        """Move one of the held keys to the queue."""
        if self._held:
            item = sorted(self._held)[pick % len(self._held)]
            super().add(item, self._held.pop(item))


class RepeatingCache(EventWindow):
    """An event feed that can send its last `again` events a second time."""

    again = 0

    def events_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event]:
        repeated = super().events_after(max(revision - self.again, 0), limit=self.again) if self.again else ()
        self.again = 0
        return [*repeated, *super().events_after(revision, limit=limit)]


class EndpointsStage:
    """A log with the namespaces `default` and `other` and the nodes `node-a` and `node-b`, and the process that uses
    this log.
    """

    def __init__(self, kill_after: int = 0, *, slice_size: int = 100) -> None:
        self._slice_size = slice_size
        self.clock = FakeClock()
        self.log = FragileLog(clock=self.clock, random=random.Random(0))
        self.log.kill_after = kill_after
        self._numbers = itertools.count(1)
        self.put(a_namespace(), a_namespace("other"), a_node("node-a", "zone-1"), a_node("node-b", "zone-2"))
        self.start()

    def start(self) -> None:
        """Start a new process that knows only the data in the log; the previous process has ended."""
        self.feed = RepeatingCache(self.log, clock=self.clock)
        self.informers = Informers(self.log, self.feed, clock=self.clock)
        drawn = random.Random(self.log.head().revision)
        self.informers.informer(NAMESPACES)
        self.state = InformerState(self.informers, self.log)
        self.engine = WriteEngine(
            builtin_kinds(),
            self.state,
            clock=self.clock,
            random=drawn,
            admission=default_chain(builtin_kinds(), self.clock),
        )
        context = HandContext(
            informers=self.informers, event_log=self.log, clock=self.clock, random=drawn, writer=self._client
        )
        descriptors: tuple[ControllerDescriptor[Any], ...] = (
            endpoints.DESCRIPTOR,
            endpointslice.DESCRIPTOR,
            endpointslice_mirroring.DESCRIPTOR,
        )
        slices = endpointslice.Options(max_endpoints_per_slice=self._slice_size)
        options = {endpointslice.DESCRIPTOR.name: slices}
        self.controllers: list[Controller] = [
            each.build(context, options.get(each.name) or each.options()) for each in descriptors
        ]
        self.queues = [DisorderedQueue(controller.name, clock=self.clock) for controller in self.controllers]
        for controller, queue in zip(self.controllers, self.queues, strict=True):
            controller.queue = queue
        self.informers.sync()
        for controller in self.controllers:
            controller.start()

    def _client(self, descriptor: ControllerDescriptor[Any]) -> EngineClient:
        run, user = ControllerRunner(self.log, self.state, self._reach), descriptor.as_user
        return EngineClient(self.engine, run, Requester(user.name), canonical=True, rights=rights_of(user))

    def _reach(self, revision: Revision, patience: float) -> bool:
        self.feed.catch_up()
        while self.informers.step():
            pass
        return self.informers.revision >= revision

    def new_uid(self) -> str:
        return f"uid-{next(self._numbers)}"

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return self.log.get(resource, Key(namespace, name))

    def all(self, resource: Resource, namespace: str | None = None) -> list[Object]:
        return [obj for obj in self.log.snapshot(resource).objects if namespace in (None, obj.namespace)]

    def put(self, *objects: Object) -> None:
        """Create or replace objects with writes of a client; a replaced object keeps its uid."""
        for obj in objects:
            stored = self.log.get(obj.resource, obj.key)
            if stored is None:
                self.log.append([Proposal(EventType.ADDED, obj, 0)], author=CLIENT)
            else:
                kept = obj.with_metadata(uid=stored.uid)
                self.log.append([Proposal(EventType.MODIFIED, kept, stored.revision)], author=CLIENT)

    def delete(self, obj: Object) -> None:
        """Delete an object with a write of a client."""
        self.log.append([Proposal(EventType.DELETED, obj, obj.revision)], author=CLIENT)

    def follow(self) -> None:
        """Update the caches to the newest revision of the log."""
        while self.informers.step():
            pass

    def work(self, number: int, pick: int = 0) -> bool:
        """Let a controller reconcile one of its keys; return False if the controller has no keys."""
        self.queues[number].release(pick)
        return self.controllers[number].process_next(timeout=0)

    def nudge(self, places: Iterable[tuple[str, str]]) -> None:
        """Enqueue these Services in every controller, although the Services have not changed."""
        for queue, place in itertools.product(self.queues, places):
            queue.add(Key(*place))

    def settle(self) -> None:
        """Run the controllers and advance the clock until no work is left."""
        for _ in range(_TOO_MANY):
            self.follow()
            if any(self.work(number) for number in range(len(self.controllers))):
                continue
            waits = [wait for queue in self.queues if (wait := queue.next_ready_in()) is not None]
            if not waits:
                return
            self.clock.step(max(min(waits), 0.001))
        raise AssertionError("the controllers go round in circles")

    def written_since(self, revision: Revision) -> list[str]:
        """Return the events that controllers wrote."""
        events = self.log.events_after(revision, limit=100_000)
        return [f"{e.actor} {e.type.name} {e.object.resource} {e.key}" for e in events if e.actor != CLIENT.actor]

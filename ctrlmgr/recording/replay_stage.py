"""The stage of a replay: a log, caches and controllers of ctrlmgr, which all run on one thread.

Guarantees:
- Nothing runs in the background: inputs are appended, caches are updated and controllers run only during calls of the
  stage's methods.
- When `follow` or `settle` has returned, the inputs of `append` are in the log, in order.
- A call of `settle` always ends, because it raises `NotQuiescent` if a controller loops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar

import msgspec

from ctrlmgr import __version__
from ctrlmgr.admission.plugin_registry import READ, default_chain
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, NAMESPACES, Key, Resource, Revision
from ctrlmgr.client import CONTROLLER_MANAGER, ControllerRunner, EngineClient, InformerState
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.custom_kinds import Follower, follow_definitions
from ctrlmgr.engine.operations import Append, Command, Operation
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.errors import CtrlmgrError, SettingsError, TooManyRequests
from ctrlmgr.eventlog import Appending, Author, Cause, Event, EventLog, EventType, Fence, Proposal, open_log
from ctrlmgr.informer import EventWindow, Informer, Informers
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.manager import Controller
from ctrlmgr.recording.replayed_controllers import ControllerBuilder, user_of
from ctrlmgr.recording.virtual_clock import LogClock, ReplayClock
from ctrlmgr.workqueue import CHANGE, WorkQueue

T = TypeVar("T")

_SEED = 20240613
"""The seed of all randomness in a replay; its value is arbitrary but must never change, so that replays give equal
results.
"""

RECORDING = Author("recording")
"""The author that the log stores for inputs; the managedFields of the objects name the recorded authors."""

_TOGETHER = 50_000
"""Microseconds within which inputs are appended together; all events of one append have the time of the last input."""

_FOLLOW_AFTER = 500
"""Maximum number of inputs until the caches are updated."""

_MAX_ADVANCE = 600.0
"""Maximum virtual seconds of one `settle`; all retries for one Service together take 164 seconds."""

_PATIENCE = 1_000
"""A controller counts as looping after this number of reconciles, plus ten for each waiting object."""


class NotQuiescent(Exception):
    """Raised if a controller did not become quiescent; its argument is the controller's name.

    Callers outside of this package never receive this error.
    """


def open_replay_log(url: str, clock: ReplayClock, *, anchor: Path | None = None) -> EventLog:
    """Open the log at `url`, created if needed, for a replay with the time of `clock`; see `open_log`."""
    random = Random(_SEED)
    log = open_log(url, clock=LogClock(clock), random=random, migrate=True, anchor=anchor)
    random.seed(_SEED)  # opening the log has used random numbers, and their count differs between kinds of logs
    return log


class _StageState(InformerState):
    """The caches of the stage. If the recording has no namespaces, objects may be created in any namespace."""

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return an object; if the recording has no namespaces, return a stand-in for a namespace."""
        if resource != NAMESPACES or self._has_namespaces():
            return super().get(resource, key)
        body = msgspec.json.encode({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": key.name}})
        return Object(NAMESPACES, body)

    def _has_namespaces(self) -> bool:
        lister = self.informers.lister(NAMESPACES)
        return lister is None or len(lister) > 0


class AppendInterceptor(Protocol):
    """Observes our controllers' appends, and can change them."""

    def named(self, proposal: Proposal) -> Proposal:
        """Return the proposal that is appended instead."""

    def written(self, events: Sequence[Event]) -> None:
        """Process the events that were appended."""


def _observed(operation: Operation[T], writings: Sequence[AppendInterceptor]) -> Operation[T]:
    """Run an operation of the engine; pass each of its appends to `writings`."""
    try:
        command: Command = next(operation)
        while True:
            if isinstance(command, Append):
                for writing in writings:
                    command = command._replace(proposals=[writing.named(each) for each in command.proposals])
            try:
                answer: Any = yield command
            except CtrlmgrError as error:
                command = operation.throw(error)
                continue
            if isinstance(command, Append):
                for writing in writings:
                    writing.written(answer)
            command = operation.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


class HeldQueue(WorkQueue[Key]):
    """A work queue that holds items from watches back, so that the stage decides when each controller acts.

    Retries and requeues are not held back, because their time is determined by their delay.
    """

    def __init__(self, name: str, *, clock: Clock) -> None:
        """Create an empty instance."""
        super().__init__(name, clock=clock)
        self._held: dict[Key, set[Revision]] = {}
        self._priorities: dict[Key, int] = {}  # the highest priority with which each held item was added
        self._failed: dict[Key, None] = {}  # failed items, in order

    def add(self, item: Key, triggers: Iterable[Revision] = (), *, priority: int = CHANGE) -> None:
        """Hold `item` back; repeated triggers of the same item are held back as one item."""
        self._held.setdefault(item, set()).update(triggers)
        self._priorities[item] = max(priority, self._priorities.get(item, priority))

    def add_rate_limited(self, item: Key, triggers: Iterable[Revision] = (), *, priority: int = CHANGE) -> float:
        """Add `item` after the rate limiter's delay, or earlier if `queue_failed_now` is called."""
        self._failed[item] = None
        return super().add_rate_limited(item, triggers, priority=priority)

    def forget(self, item: Key) -> None:
        """Reset the rate limiter for `item`."""
        self._failed.pop(item, None)
        super().forget(item)

    def queue_failed_now(self) -> None:
        """Queue all failed items now, because the recording does not say when the recorded controller retried."""
        for item in self._failed:
            super().add(item)

    def release(self, item: Key) -> bool:
        """Queue `item` if it is held back; return False if it is not held back."""
        triggers = self._held.pop(item, None)
        if triggers is None:
            return False
        super().add(item, triggers, priority=self._priorities.pop(item))
        return True

    @property
    def held(self) -> int:
        """The number of items that are held back."""
        return len(self._held)

    def release_all(self) -> None:
        """Queue all held items, in the order in which they were added."""
        for item in list(self._held):
            self.release(item)


class ReplayStage:
    """The log, caches and controllers of one replay; only one thread may use an instance."""

    def __init__(self, log: EventLog, clock: ReplayClock, controllers: Mapping[str, ControllerBuilder]) -> None:
        """Create a stage on an empty log of `open_replay_log`; raises `SettingsError` if the log has events."""
        if revision := log.head().revision:
            raise SettingsError(f"the log holds {revision} events already; a recording is replayed into an empty one")
        self.log = log
        self.clock = clock
        self.inputs = 0
        self._reconciles = dict.fromkeys(controllers, 0)
        self._feed = EventWindow(log, capacity=4 * _FOLLOW_AFTER, clock=LogClock(clock))
        self._informers = Informers(log, self._feed, clock=clock)
        for resource in (NAMESPACES, *READ):
            self._informers.informer(resource)
        state = _StageState(self._informers, log)
        self.kinds = kinds = builtin_kinds()
        definitions = self._informers.informer(DEFINITIONS)
        definitions.add_handler(lambda change: kinds.refresh(definitions.lister.list()))
        self._engine = WriteEngine(
            kinds, state, clock=clock, random=Random(_SEED), admission=default_chain(kinds, clock)
        )
        self._runner = ControllerRunner(log, state, self._reach)
        self.writings: list[AppendInterceptor] = []
        """The observers of our controllers' appends."""
        self.in_time: Collection[str] = ()
        """The names of the controllers that act only at the times when the recorded controllers acted."""
        self.idle: Collection[str] = ()
        """The names of the controllers that do not act, because the recording lacks kinds that they need."""
        self._queues: dict[str, HeldQueue] = {}
        self._controllers = {name: self._build(name, build) for name, build in controllers.items()}
        # Pending inputs, in order: first the submitted appends, then the inputs that are collected for the next append.
        self._appending: list[Appending] = []
        self._gathered: list[Proposal] = []
        self._together_until = 0  # inputs after this time (microseconds since 1970) start a new append

    def _run_operation(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        observed = _observed(operation, self.writings) if self.writings else operation
        return self._runner(observed, cause, fence)

    def _build(self, name: str, build: ControllerBuilder) -> Controller:
        random = Random(f"{_SEED} {name}")
        requester = Requester(user_of(name), ("system:masters",), f"ctrlmgr/{__version__}")
        client = EngineClient(self._engine, self._run_operation, requester, manager=CONTROLLER_MANAGER)
        controller = build(self._informers, client, self.log, self.clock, random)
        self._queues[name] = HeldQueue(name, clock=self.clock)
        controller.work_from(self._queues[name])
        return controller

    def _reach(self, revision: Revision, patience: float) -> bool:
        self._feed.catch_up()
        while self._informers.step():
            pass
        return self._informers.revision >= revision

    @property
    def reconciles(self) -> int:
        """The number of reconciles by all controllers."""
        return sum(self._reconciles.values())

    def informer(self, resource: Resource) -> Informer:
        """Return the informer of a resource; this method must be called before `start`."""
        return self._informers.informer(resource)

    def follow_definitions(self, follower: Follower) -> None:
        """Notify `follower` of the custom kinds that the recording defines.

        The caller must call `follow_definitions` before `start`.
        """
        follow_definitions(self._informers, follower)

    def start(self) -> None:
        """Sync the caches with the empty log and start the controllers."""
        self._informers.sync()
        for controller in self._controllers.values():
            controller.start()

    def advance_to(self, moment: int) -> None:
        """Advance the clock to `moment`, in microseconds since 1970.

        Inputs that were appended before keep their time.
        """
        if moment > self._together_until:
            self._submit()
            self._together_until = moment + _TOGETHER
        self.clock.advance_to(moment)

    def append(self, type: EventType, obj: Object) -> None:
        """Append an input; if the append fails, `follow` raises the error later."""
        self.inputs += 1
        self._gathered.append(Proposal(type, obj, None))
        if len(self._gathered) >= _FOLLOW_AFTER:
            self.follow()

    def _submit(self) -> None:
        if not self._gathered:
            return
        try:
            self._appending.append(self.log.submit(self._gathered, author=RECORDING))
        except TooManyRequests:  # the database is slow, so wait for it
            self._wait()
            self._appending.append(self.log.submit(self._gathered, author=RECORDING))
        self._gathered = []

    def _wait(self) -> None:
        for appending in self._appending:
            appending.result()
        self._appending.clear()

    def follow(self) -> None:
        """Wait until every input is in the log and in the caches."""
        self._submit()
        self._wait()
        while self._informers.step(_FOLLOW_AFTER) == _FOLLOW_AFTER:
            pass

    def act(self, controller: str, key: Key, *, unasked: bool = False) -> None:
        """Let a controller reconcile one object if the object is triggered.

        If `unasked` is set, the controller reconciles the object even without a trigger. Raises `NotQuiescent` if a
        controller does not become quiescent.
        """
        self.follow()
        queue = self._queues[controller]
        if unasked:
            queue.add(key)
        if queue.release(key):
            self._run(controller, self._reconciles[controller] + _PATIENCE)

    def answer(self, controllers: Iterable[str]) -> None:
        """Let controllers reconcile all triggered objects.

        Raises `NotQuiescent` if a controller does not become quiescent.
        """
        self.follow()
        for name in controllers:
            queue = self._queues[name]
            if queue.held:
                queue.release_all()
                self._run(name, self._reconciles[name] + _PATIENCE)

    def has_reasons(self) -> bool:
        """Return whether a controller in `in_time` has keys to reconcile."""
        self.follow()
        return any(self._queues[name].held for name in self.in_time)

    def catch_up(self, patience: float = 0.0, *, again: bool = False) -> None:
        """Let the controllers in `in_time` act, with at most `patience` seconds of virtual time.

        If `again` is set, the controllers also retry failed keys. Raises `NotQuiescent` if a controller does not
        become quiescent.
        """
        self.follow()
        deadline = self.clock.monotonic() + patience
        most = {name: self._reconciles[name] + _PATIENCE for name in self.in_time}
        if again:
            for name in self.in_time:
                self._queues[name].queue_failed_now()
        while True:
            waiting = self._release_all(self.in_time)
            delay = min(waiting.values(), default=None)
            if delay is None or (delay > 0 and self.clock.monotonic() + delay > deadline):
                return
            if delay > 0:
                self.clock.advance(delay)
            for name in waiting:
                self._run(name, most[name])

    def settle(self) -> None:
        """Let all controllers except those in `in_time` act in virtual time, until no retry or delay is pending.

        Raises `NotQuiescent` if a controller does not become quiescent.
        """
        self.follow()
        deadline = self.clock.monotonic() + _MAX_ADVANCE
        patience = _PATIENCE + 10 * sum(queue.held for queue in self._queues.values())
        most = {name: done + patience for name, done in self._reconciles.items()}
        others = [name for name in self._controllers if name not in self.in_time and name not in self.idle]
        while waiting := self._release_all(others):
            for name in others:
                self._run(name, most[name])
            name, delay = min(waiting.items(), key=itemgetter(1))
            if self.clock.monotonic() > deadline:
                raise NotQuiescent(name)
            if delay > 0:
                self.clock.advance(delay)

    def _release_all(self, controllers: Iterable[str]) -> dict[str, float]:
        """Queue all items that are held back; return the seconds after which every controller can act on its items."""
        waiting = {}
        for name in controllers:
            queue = self._queues[name]
            queue.release_all()
            delay = queue.next_ready_in()
            if delay is not None:
                waiting[name] = delay
        return waiting

    def _run(self, name: str, most: int) -> None:
        controller = self._controllers[name]
        queue = self._queues[name]
        while queue and controller.process_next(timeout=0):
            self._reconciles[name] += 1
            if self._reconciles[name] > most:
                raise NotQuiescent(name)
            self._informers.step()  # so that the next reconcile reads the writes of this reconcile

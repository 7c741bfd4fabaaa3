"""A control plane for tests of apps, without a server, threads or waiting. Only the test advances the time.

Guarantees:
- A write is handled as in the server: validated against the kind's schema, defaulted and admitted. Therefore the
  harness refuses the same objects as the server, with the same errors.
- Controllers run only in `settle` and `advance`, always in the same order.
- An error of a controller fails the test, unless the test injected it (`fail`) or allows errors (`strict=False`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar, overload

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS, NAMESPACES, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers import registry
from ctrlmgr.controllers.customresourcedefinitions.controller import new_definition_controller
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.controllers.events.recorder import EventBroadcaster, Recorder
from ctrlmgr.controllers.gated_controllers import with_gates_on
from ctrlmgr.engine.blocking_driver import Driver
from ctrlmgr.engine.engine import Engine
from ctrlmgr.engine.operations import Answer, Operation, Target
from ctrlmgr.engine.request_options import Body, DeleteOptions, Requester, WriteOptions
from ctrlmgr.errors import ApiError, CtrlmgrError
from ctrlmgr.eventlog import EventLog, EventType
from ctrlmgr.eventlog.event import Cause, Event, Fence
from ctrlmgr.framework.app import App
from ctrlmgr.framework.app_admission import plugin_of
from ctrlmgr.framework.cached_objects import read
from ctrlmgr.framework.children import Child, declared, manifest, to_object
from ctrlmgr.framework.class_declaration import Declaration, declaration_of
from ctrlmgr.framework.controller_building import build, check_names, descriptors
from ctrlmgr.framework.derived_definition import definition_of
from ctrlmgr.framework.typed_kinds import Kind, Untyped
from ctrlmgr.informer import Informers
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.logging import configure_unless_done
from ctrlmgr.manager import Controller
from ctrlmgr.testing.fake_clock import FakeClock
from ctrlmgr.testing.faults import Fault, Faults, FaultyClient
from ctrlmgr.testing.simulated_pods import NODE_CONTROLLERS, is_ready, new_deployment, options_of
from ctrlmgr.testing.stage import Stage

K = TypeVar("K", bound=Kind)

_RECONCILES = 1_000
"""The maximum number of reconciles in `settle`; if the controllers are not idle then, `settle` fails."""
_MOMENT = 0.001
"""The minimum number of seconds of one step of the clock."""
_MERGE = "application/merge-patch+json"


class RecordedEvent(NamedTuple):
    """The content of an Event: its type (`Normal`, `Warning`), reason, message, and count."""

    type: str
    reason: str
    message: str
    times: int = 1


class RecordedWrite(NamedTuple):
    """A write that a controller has made."""

    type: str
    """The type of the change: `ADDED`, `MODIFIED` or `DELETED`."""
    resource: str
    key: str
    controller: str
    triggers: tuple[int, ...] = ()
    """The revisions of all changes that triggered the reconcile."""


class Harness:
    """A cluster that runs one app, and contains a namespace `default`."""

    def __init__(
        self,
        app: App,
        *,
        controllers: Sequence[str] = (),
        kinds: Sequence[type[Kind]] = (),
        nodes: int | str = 0,
        strict: bool = True,
        field_validation: str = "Strict",
        seed: int = 1,
    ) -> None:
        """Install the app's kinds, and build its controllers and the built-in controllers named in `controllers`.

        `kinds` are installed in addition to the kinds of the app. `nodes` is the number of simulated nodes, or a file
        that describes them; if it is given, pods run on these nodes, and the workload controllers run. If `strict` is
        False, an error of a reconcile does not fail the test. `field_validation` decides about unknown fields in the
        test's writes: `Strict` refuses the write, as kubectl does, `Warn` records the fields in `warnings`, and
        `Ignore` drops the fields.
        """
        configure_unless_done()
        self._stage = Stage(kinds=builtin_kinds(), seed=seed, plugins=[plugin_of(each) for each in app.admissions])
        self.clock: FakeClock = self._stage.clock
        """The clock of the harness; `advance` steps it and runs the controllers."""
        self.errors: list[tuple[str, str, Exception]] = []
        """The errors of controllers as (controller, object, error); injected errors are not included."""
        self.random = Random(seed)
        self.event_log: EventLog = self._stage.log
        self.engine: Engine = self._stage.engine
        self.root_ca = ""
        self.at_once = 1
        self.recalls = False
        self.scheduler_plugins = app.scheduler
        self.warnings: Sequence[str] = ()
        """The warnings about the last write of the test."""
        self._strict = strict
        self._options = WriteOptions(field_validation=field_validation)
        self._faults = Faults()
        self._broadcaster = EventBroadcaster(clock=self.clock, random=Random(seed))
        self._app = app
        self._nodes = str(nodes or "")
        options = (*controllers, *(NODE_CONTROLLERS if nodes else ()))
        self._others = registry.enabled(options).descriptors if options else ()
        check_names([app], self._others)
        self._names = {each.user for each in descriptors(app)}
        self._names |= {each.user for each in self._others}
        self._users = Requester("test", ("system:masters",), "test")
        for name in ("default", *(["kube-node-lease"] if nodes else ())):
            self._stage.namespace(name)
        defined = {each.resource: each.cls for each in app.kinds} | {
            kind.declaration.resource: kind for kind in kinds if not kind.declaration.existing
        }
        self._controllers: list[Controller] = []
        self._start()
        for kind in defined.values():
            self.create(definition_of(kind))
        self.settle()
        if nodes:
            self.until(lambda: all(is_ready(each) for each in self.list("v1/Node")), within=60)

    def _start(self) -> None:
        for controller in self._controllers:
            controller.stop()
        self.informers = Informers(self.event_log, self._stage.feed, clock=self.clock)
        self._controllers = [*self._built()]
        self.informers.sync()
        for controller in self._controllers:
            controller.start()

    def _built(self) -> Iterable[Controller]:
        apiserver = self._writer("system:apiserver")
        yield new_definition_controller(self.informers, apiserver, self.event_log, clock=self.clock, random=self.random)
        for each in descriptors(self._app):
            yield build(each, self, failed=self._failed)
        for other in with_gates_on(self._others):
            yield other.build(self, options_of(other, self._nodes))

    def restart(self) -> None:
        """Start the controllers again; from before the restart, only the content of the log is kept."""
        self._start()

    # The `ControllerContext` with which controllers are built.

    def client(self, descriptor: ControllerDescriptor[Any], *, canonical: bool = False) -> EngineClient:
        """Return a controller's client."""
        return self._writer(descriptor.user, canonical=canonical)

    def apiserver_client(self) -> EngineClient:
        """Return a client for writes of the API server itself."""
        return self._writer("system:apiserver")

    def recorder(self, descriptor: ControllerDescriptor[Any]) -> Recorder:
        """Return a controller's Event recorder."""
        client = self._writer(descriptor.user, faulty=False)
        return self._broadcaster.recorder(descriptor.event_source, client, in_series=descriptor.tells_in_series)

    def _writer(self, user: str, *, canonical: bool = False, faulty: bool = True) -> EngineClient:
        requester = Requester(user, ("system:masters",), "ctrlmgr")
        faults = self._faults if faulty else Faults()
        return FaultyClient(faults, self.engine, self._run, requester, canonical=canonical)

    def _run(self, operation: Operation[Any], cause: Cause | None = None, fence: Fence | None = None) -> Any:
        driver = Driver(self.event_log, self._stage.feed, self._stage.cacher, patience=0, cause=cause)
        return driver.run(operation)

    # Tests call the following methods.

    @overload
    def create(self, obj: K, *, user: str = ..., groups: Sequence[str] = ...) -> K: ...

    @overload
    def create(self, obj: Untyped | Mapping[str, Any], *, user: str = ..., groups: Sequence[str] = ...) -> Untyped: ...

    def create(self, obj: Child, *, user: str = "", groups: Sequence[str] = ()) -> Any:
        """Create an object as a client would, and return the object; raises `ApiError` (such as `Invalid`) on refusal.

        An object without a namespace is created in `default`. Admission is called with `user` and `groups`, by
        default those of an administrator; permissions are not checked.
        """
        declaration = declared(obj)
        fields = manifest(obj)
        target = self._target(declaration, "", fields["metadata"].get("namespace"))
        body = Body("application/json", to_object(fields, declaration.resource).wire())
        return self._answered(declaration, self.engine.create(target, body, self._options, self._as(user, groups)))

    @overload
    def patch(
        self,
        kind: type[K],
        name: str,
        patch: Any,
        *,
        namespace: str = ...,
        subresource: str = ...,
        user: str = ...,
        groups: Sequence[str] = ...,
    ) -> K: ...

    @overload
    def patch(
        self,
        kind: str,
        name: str,
        patch: Any,
        *,
        namespace: str = ...,
        subresource: str = ...,
        user: str = ...,
        groups: Sequence[str] = ...,
    ) -> Untyped: ...

    def patch(
        self,
        kind: Any,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str = "default",
        subresource: str = "",
        user: str = "",
        groups: Sequence[str] = (),
    ) -> Any:
        """Apply a merge patch to an object, or to its `status`, and return it.

        Raises `ApiError` if the write is refused.
        """
        declaration = declaration_of(kind)
        target = self._target(declaration, name, namespace)._replace(subresource=subresource)
        body = Body(_MERGE, _encoded(patch))
        return self._answered(declaration, self.engine.patch(target, body, self._options, self._as(user, groups)))

    def delete(
        self,
        kind: type[Kind] | str,
        name: str,
        *,
        namespace: str = "default",
        user: str = "",
        groups: Sequence[str] = (),
    ) -> None:
        """Delete an object. An object with finalizers exists until the finalizers are removed. Raises `NotFound`."""
        declaration, options = declaration_of(kind), DeleteOptions(propagation_policy="Background")
        target = self._target(declaration, name, namespace)
        self._answered(declaration, self.engine.delete(target, None, options, self._as(user, groups)))

    def _as(self, user: str, groups: Sequence[str]) -> Requester:
        if not user and not groups:
            return self._users
        return Requester(user or "test", (*groups, "system:authenticated"), "test")

    def _answered(self, declaration: Declaration, operation: Operation[Answer]) -> Any:
        """Run a write of the test, store its warnings, and return the object.

        The method returns None if the response contains no object.
        """
        self.warnings = ()
        try:
            answer = self._run(operation)
        except ApiError as error:
            self.warnings = tuple(error.warnings)
            raise
        self.warnings = tuple(answer.warnings)
        return None if answer.object is None else read(declaration, answer.object)

    def deployment(
        self, name: str, *, image: str = "nginx", replicas: int = 1, namespace: str = "default", within: float = 60
    ) -> Untyped:
        """Create a Deployment, advance time until all its pods are ready, and return it.

        The Deployment requires simulated nodes (`nodes`). The pods have the label `app` with the Deployment's name.
        Raises AssertionError if the pods are not ready in time.
        """
        if not self._nodes:
            raise AssertionError("pods need nodes to run: write Harness(app, nodes=3)")
        self.create(new_deployment(name, image, replicas, namespace))
        self.until(lambda: is_ready(self.get("apps/v1/Deployment", name, namespace=namespace)), within=within)
        found: Untyped | None = self.get("apps/v1/Deployment", name, namespace=namespace)
        assert found is not None, "it was there a moment ago"
        return found

    def until(self, holds: Callable[[], object], *, within: float = 60) -> None:
        """Advance time until a condition becomes true.

        Raises AssertionError if the condition does not become true within this number of seconds.
        """
        end = self.clock.monotonic() + within
        self.settle()
        while not holds():
            if self.clock.monotonic() >= end:
                raise AssertionError(
                    f"the condition did not become true within {within:g} s; the last writes are {self.written()[-6:]}"
                )
            self.advance(0.25)

    @overload
    def get(self, kind: type[K], name: str, *, namespace: str = ...) -> K | None: ...

    @overload
    def get(self, kind: str, name: str, *, namespace: str = ...) -> Untyped | None: ...

    def get(self, kind: Any, name: str, *, namespace: str = "default") -> Any:
        """Return the current state of an object; None if the object does not exist."""
        declaration = declaration_of(kind)
        key = Key(namespace if declaration.namespaced else "", name)
        obj = self.event_log.get(declaration.resource, key)
        return None if obj is None else read(declaration, obj)

    @overload
    def list(self, kind: type[K], *, namespace: str | None = ...) -> Sequence[K]: ...

    @overload
    def list(self, kind: str, *, namespace: str | None = ...) -> Sequence[Untyped]: ...

    def list(self, kind: Any, *, namespace: str | None = None) -> Any:
        """Return the objects of a kind in one namespace (None for all namespaces), by key."""
        declaration = declaration_of(kind)
        found = self.event_log.snapshot(declaration.resource, namespace=namespace).objects
        return [read(declaration, each) for each in sorted(found, key=lambda obj: obj.key)]

    def settle(self) -> None:
        """Run the controllers until none of them has work at the current time.

        Raises AssertionError if the controllers do not become idle, or if one of them has raised an error.
        """
        for _ in range(_RECONCILES):
            self.hear()
            if not any(self.work(each.name) for each in self._controllers):
                self._check()
                return
        raise AssertionError(f"the controllers do not become idle: the last writes are {self.written()[-6:]}")

    def advance(self, seconds: float) -> None:
        """Advance time by `seconds`, and run each controller whenever its work is due."""
        end = self.clock.monotonic() + seconds
        self.settle()
        while (left := end - self.clock.monotonic()) > 0:
            due = [each.queue.next_ready_in() for each in self._controllers]
            self.clock.step(min([left, *(max(each, _MOMENT) for each in due if each is not None)]))
            self.settle()

    def hear(self, limit: int | None = None) -> int:
        """Apply at most `limit` new events to the caches; return the number of applied events."""
        self._stage.feed.catch_up()
        if limit is not None:
            return self.informers.step(limit)
        return sum(iter(self.informers.step, 0))

    def work(self, controller: str) -> bool:
        """Let a controller reconcile its next object with the current caches; return False if no object is queued."""
        found = next(each for each in self._controllers if each.name == controller)
        try:
            return found.process_next(timeout=0)
        finally:
            self._broadcaster.flush()

    def ready(self) -> Sequence[str]:
        """Return the controllers that have queued objects."""
        return [each.name for each in self._controllers if len(each.queue)]

    @property
    def unheard(self) -> int:
        """The number of events that have not been applied to the caches yet."""
        self._stage.feed.catch_up()
        return self._stage.feed.head() - self.informers.revision

    def fail(
        self,
        error: Exception,
        *,
        times: int = 1,
        verb: str = "",
        kind: type[Kind] | str | None = None,
        lost: bool = False,
    ) -> None:
        """Make the next writes of controllers fail with an error.

        `verb` is `apply`, `status`, `create`, `update` or `delete` (empty for any), and `kind` is the written kind
        (None for any). A write that is `lost` takes effect, but its response is lost.
        """
        resource = None if kind is None else declaration_of(kind).resource
        self._faults.add(Fault(error, times, verb, resource, lost))

    def events(self, kind: type[Kind] | str, name: str, *, namespace: str = "default") -> Sequence[RecordedEvent]:
        """Return the Events about an object, beginning with the oldest."""
        about = declaration_of(kind).kind
        found = [each.to_dict() for each in self.event_log.snapshot(EVENTS).objects]
        return [
            RecordedEvent(each["type"], each["reason"], each["message"], each.get("count", 1))
            for each in sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"]))
            if (each["involvedObject"]["kind"], each["involvedObject"]["name"]) == (about, name)
            and each["metadata"]["namespace"] == namespace
        ]

    def written(self) -> Sequence[RecordedWrite]:
        """Return the writes of the controllers in order, except those of Events."""
        events = self.event_log.events_after(0, limit=1_000_000)
        return [self._written(each) for each in events if each.actor in self._names and each.resource != EVENTS]

    def _written(self, event: Event) -> RecordedWrite:
        known = self.event_log.reconcile(event.reconcile)
        triggers = tuple(known.cause.triggers) if known is not None else ()
        actor = event.actor.rpartition(":")[2]
        return RecordedWrite(EventType(event.type).name, str(event.resource), str(event.key), actor, triggers)

    def state(self, *, without: Iterable[Resource] = (EVENTS, NAMESPACES)) -> Mapping[str, Any]:
        """Return all objects by resource and key.

        To allow the comparison of two runs, timestamps, uids and versions are removed.
        """
        left_out = set(without)
        found = [each for each in self.event_log.snapshot().objects if each.resource not in left_out]
        return {f"{each.resource} {each.key}": _comparable(each) for each in found}

    def _target(self, declaration: Declaration, name: str, namespace: str | None) -> Target:
        kind = self.engine.kinds.find(declaration.group, declaration.version, declaration.resource.plural)
        if kind is None:
            raise AssertionError(f"{declaration.label} is not installed: add the kind to kinds=")
        return Target(kind, (namespace or "default") if kind.namespaced else "", name)

    def _failed(self, controller: str, raw: Object, error: Exception) -> None:
        expected = any(error is each for each in self._faults.raised)
        if not expected and not (isinstance(error, CtrlmgrError) and error.lost_race):
            self.errors.append((controller, str(raw.key), error))

    def _check(self) -> None:
        if self._strict and self.errors:
            controller, key, error = self.errors.pop(0)
            raise AssertionError(
                f"controller {controller} failed for {key}: {type(error).__name__}: {error}"
            ) from error


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


def _comparable(obj: Object) -> Any:
    fields = obj.to_dict()
    metadata = {name: value for name, value in fields["metadata"].items() if name not in _VOLATILE}
    if "ownerReferences" in metadata:
        metadata["ownerReferences"] = [
            {name: value for name, value in each.items() if name != "uid"} for each in metadata["ownerReferences"]
        ]
    return _without_moments({**fields, "metadata": metadata})


def _without_moments(value: Any) -> Any:
    if isinstance(value, dict):
        left_out = ("lastTransitionTime", "observedGeneration")
        return {name: _without_moments(each) for name, each in value.items() if name not in left_out}
    return [_without_moments(each) for each in value] if isinstance(value, list) else value

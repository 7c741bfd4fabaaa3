"""Calls a reconcile function for an object: decodes the object, manages its finalizer, and writes its status.

Guarantees:

- An exception in the reconcile function does not end the controller. The exception is counted and logged with the
  object, and the reconcile is retried with backoff. From the third consecutive failure of a reconcile on, an Event
  reports the failure. A call of `sys.exit()` in the function, and an object that the class cannot decode, also count as
  such a failure.
- The finalizer is added to an object before its first reconcile, and removed when the finalizer's function has
  returned.
- The status is written after the function has returned or raised, and only if the status has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.events.recorder import WARNING, Recorder
from ctrlmgr.errors import AlreadyExists, CtrlmgrError, NotFound, TerminalError
from ctrlmgr.framework.app import AppController
from ctrlmgr.framework.cached_objects import Cache, read
from ctrlmgr.framework.children import plain, to_object
from ctrlmgr.framework.coroutines import blocking
from ctrlmgr.framework.daemons import Daemon, begin
from ctrlmgr.framework.reconcile_context import Context, Memory, Writer
from ctrlmgr.framework.typed_kinds import Status
from ctrlmgr.manager import Result

TOLD_AT: Final = 3
"""The number of consecutive failures of a reconcile after which an Event is recorded."""


class AppReconciler:
    """The `Reconciler` of one controller of an app."""

    def __init__(
        self,
        controller: AppController[Any],
        cache: Cache,
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
        failed: Callable[[str, Object, Exception], None] | None = None,
    ) -> None:
        """Create a reconciler that calls `controller`, which reads `cache`; `failed` is called with each exception."""
        self._tell_failed = failed
        self._controller = controller
        self._function = blocking(controller.function)
        self._cleanup = blocking(controller.cleanup) if controller.cleanup is not None else None
        self._declaration = controller.declaration
        self._objects = cache.lister(controller.declaration)
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._random = random
        # The state of each object, by key. No lock is needed: only one worker uses a key at a time, and changes of
        # dictionary entries are atomic.
        self._memory: dict[Key, Memory] = {}
        self._daemons: dict[Key, Daemon] = {}
        self._failures: dict[Key, int] = {}

    def reconcile(self, key: Key, client: Writer) -> Result | None:
        """Reconcile one object; if the object was deleted, delete the state that the controller keeps about it."""
        raw = self._objects.get(key)
        if raw is None:
            self._memory.pop(key, None)
            self._stop(key)
            self._failures.pop(key, None)
            return None
        try:
            result = self._reconcile(raw, client)
        except Exception as error:
            self._failed(raw, error)
            raise
        except SystemExit as error:
            wrapped = RuntimeError(f"the controller called sys.exit({error.code!r})")
            self._failed(raw, wrapped)
            raise wrapped from error
        self._failures.pop(key, None)
        return result

    def on_stop(self) -> None:
        """End all daemons, because the controller has stopped."""
        for key in [*self._daemons]:
            self._stop(key)

    def _stop(self, key: Key) -> None:
        if (daemon := self._daemons.pop(key, None)) is not None:
            daemon.stop()

    def _failed(self, raw: Object, error: Exception) -> None:
        if self._tell_failed is not None:
            self._tell_failed(self._controller.name, raw, error)
        if isinstance(error, CtrlmgrError) and error.lost_race and not isinstance(error, AlreadyExists):
            return  # A conflict is not reported, because the reconcile is retried.
        times = self._failures[raw.key] = self._failures.get(raw.key, 0) + 1
        if times >= TOLD_AT or isinstance(error, TerminalError):
            self._recorder.event(raw, WARNING, "ReconcileFailed", f"{type(error).__name__}: {error}")

    def _reconcile(self, raw: Object, client: Writer) -> Result | None:
        controller = self._controller
        if controller.is_daemon:
            return self._step(raw, client)
        if raw.is_terminating:
            if self._cleanup is None or controller.finalizer not in (raw.metadata.finalizers or ()):
                return None
            result, written = self._call(self._cleanup, raw, client)
            if result is None:
                self._release(written, client)
            return result
        if self._cleanup is not None and controller.finalizer not in (raw.metadata.finalizers or ()):
            raw = client.update(raw.with_metadata(finalizers=[*(raw.metadata.finalizers or ()), controller.finalizer]))
        result, _ = self._call(self._function, raw, client)
        self._memory[raw.key].seen = raw
        if result is None and controller.resync is not None:
            return Result(requeue_after=controller.resync)
        return result

    def _step(self, raw: Object, client: Writer) -> Result | None:
        """Run the daemon of an object up to its next `yield`, if its sleep is over."""
        daemon = self._daemons.get(raw.key)
        if raw.is_terminating or (daemon is not None and daemon.uid != raw.uid):
            self._stop(raw.key)
        if raw.is_terminating:
            return None
        if daemon is not None and (wait := daemon.wait(raw.uid, self._clock.now())) is not None:
            return wait
        return self._call(partial(self._run, raw), raw, client)[0]

    def _run(self, raw: Object, obj: Any, context: Context) -> Result | None:
        daemon = self._daemons.get(raw.key)
        if daemon is None:
            daemon = self._daemons[raw.key] = begin(self._function, obj, context, raw.uid)
        try:
            return daemon.step(obj, context, where=self._controller.where)
        except BaseException:
            self._daemons.pop(raw.key)  # The daemon starts again.
            raise

    def _release(self, raw: Object, client: Writer) -> None:
        finalizers = [each for each in raw.metadata.finalizers or () if each != self._controller.finalizer]
        try:
            client.update(raw.with_metadata(finalizers=finalizers))
        except NotFound:
            return

    def _call(
        self, function: Callable[[Any, Context], Any], raw: Object, client: Writer
    ) -> tuple[Result | None, Object]:
        """Call the reconcile function and write the status; return the function's result, and the stored object."""
        obj = self._read(raw)
        context = Context(
            self._controller.name,
            self._declaration,
            raw,
            obj,
            cache=self._cache,
            client=client,
            recorder=self._recorder,
            clock=self._clock,
            random=self._random,
            memory=self._memory.setdefault(raw.key, Memory()),
        )
        before = _status(obj)
        try:
            result = function(obj, context)
            if not isinstance(result, Result | None):
                raise TypeError(f"{self._controller.where} returned {result!r}, not a Result or None")
            _observe(obj)
        finally:
            raw = self._write_status(raw, before, _status(obj), client)
        return result, raw

    def _read(self, raw: Object) -> Any:
        try:
            return read(self._declaration, raw)
        except msgspec.ValidationError as error:
            raise TerminalError(
                f"{raw.resource} {raw.key} does not match {self._declaration.where}: {error}"
            ) from error

    def _write_status(self, raw: Object, before: Any, after: Any, client: Writer) -> Object:
        if after is None or after == before:
            return raw
        metadata = {"name": raw.name, "namespace": raw.namespace, "uid": raw.uid}
        fields = {
            "apiVersion": self._declaration.api_version,
            "kind": self._declaration.kind,
            "metadata": {name: value for name, value in metadata.items() if value},
            "status": after,
        }
        status = to_object(fields, raw.resource)
        return client.apply(status, self._controller.name, force=True, subresource="status")


def _status(obj: Any) -> Any:
    """Return an object's status as JSON values; None if the class of the object declares no status."""
    status = getattr(obj, "status", None)
    return plain(status) if isinstance(status, msgspec.Struct) else None


def _observe(obj: Any) -> None:
    status = getattr(obj, "status", None)
    if isinstance(status, Status) and obj.metadata.generation:
        status.observed_generation = obj.metadata.generation

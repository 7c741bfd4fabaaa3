"""Injects faults: determines which writes of controllers fail, how often they fail, and which of them take effect.

Guarantees: a fault occurs exactly as often as requested, and several faults occur in the order in which they were
added. A `lost` write is stored in the log although its author receives an error, as after a broken connection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.eventlog.event import Cause
from ctrlmgr.testing.observed_rights import observe

T = TypeVar("T")


@dataclass(slots=True)
class Fault:
    """A fault that is to be injected."""

    error: Exception
    times: int
    verb: str
    resource: Resource | None
    lost: bool

    def applies(self, verb: str, obj: Object) -> bool:
        """Return whether the fault applies to a write. If the fault applies, count the write."""
        if self.times < 1 or self.verb not in ("", verb) or self.resource not in (None, obj.resource):
            return False
        self.times -= 1
        return True


class Faults:
    """The faults that are to be injected."""

    def __init__(self) -> None:
        """Create an instance without faults."""
        self._coming: list[Fault] = []
        self.raised: list[Exception] = []
        """The errors that faults have raised so far."""

    def add(self, fault: Fault) -> None:
        """Add a fault that the next matching call raises."""
        self._coming.append(fault)

    def attempt(self, verb: str, obj: Object, write: Callable[[], T]) -> T:
        """Make a write, or raise the error of the first fault that applies to the write."""
        fault = next((each for each in self._coming if each.applies(verb, obj)), None)
        if fault is None:
            return write()
        self.raised.append(fault.error)
        if fault.lost:
            write()
        raise fault.error


class FaultyClient(EngineClient):
    """An `EngineClient` that injects faults, and whose writes are observed."""

    def __init__(self, faults: Faults, *arguments: Any, **options: Any) -> None:
        """Create a client that injects `faults`; the other arguments are those of `EngineClient`."""
        super().__init__(*arguments, **options)
        self._faults = faults
        self._made_with = options

    def for_reconcile(self, cause: Cause) -> FaultyClient:
        """Return the client for one reconcile of a controller."""
        return FaultyClient(self._faults, self.engine, self._run, self._requester, cause, **self._made_with)

    def create(self, obj: Object) -> Object:
        """Create the object, or raise the error of a fault."""
        observe(self._requester.user, "create", obj)
        return self._faults.attempt("create", obj, lambda: super(FaultyClient, self).create(obj))

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Update the object, or raise the error of a fault."""
        observe(self._requester.user, "update", obj, subresource)
        return self._faults.attempt("update", obj, lambda: super(FaultyClient, self).update(obj, subresource))

    def apply(self, obj: Object, manager: str, *, force: bool = False, subresource: str = "") -> Object:
        """Apply the object, or raise the error of a fault."""
        apply = super().apply
        verb = "status" if subresource == "status" else "apply"
        observe(self._requester.user, verb, obj, subresource)
        return self._faults.attempt(verb, obj, lambda: apply(obj, manager, force=force, subresource=subresource))

    def delete(self, obj: Object, propagation: str | None = None, *, grace: int | None = None) -> None:
        """Delete the object, or raise the error of a fault."""
        delete = super().delete
        observe(self._requester.user, "delete", obj)
        self._faults.attempt("delete", obj, lambda: delete(obj, propagation, grace=grace))

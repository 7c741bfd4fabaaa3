"""Faults on demand: which writes of controllers fail, how often, and whether they happen all the same.

Guarantees: a fault strikes exactly as often as it was asked to, first come first served; a write that is `lost` is in
the log although its author is told that it failed, as when a connection breaks at the worst moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.eventlog.event import Cause

T = TypeVar("T")


@dataclass(slots=True)
class Fault:
    """One that is to come."""

    error: Exception
    times: int
    verb: str
    resource: Resource | None
    lost: bool

    def strikes(self, verb: str, obj: Object) -> bool:
        """Whether it strikes a write, which uses it up once."""
        if self.times < 1 or self.verb not in ("", verb) or self.resource not in (None, obj.resource):
            return False
        self.times -= 1
        return True


class Faults:
    """The faults that are to come."""

    def __init__(self) -> None:
        """Start with none."""
        self._coming: list[Fault] = []
        self.raised: list[Exception] = []
        """Those that have struck."""

    def add(self, fault: Fault) -> None:
        """Have another one come."""
        self._coming.append(fault)

    def suffer(self, verb: str, obj: Object, write: Callable[[], T]) -> T:
        """Do a write, or fail as the first fault that strikes it says."""
        fault = next((each for each in self._coming if each.strikes(verb, obj)), None)
        if fault is None:
            return write()
        self.raised.append(fault.error)
        if fault.lost:
            write()
        raise fault.error


class FaultyClient(EngineClient):
    """An `EngineClient` whose writes may fail."""

    def __init__(self, faults: Faults, *arguments: Any, **options: Any) -> None:
        """Suffer `faults`; the rest is an `EngineClient`'s."""
        super().__init__(*arguments, **options)
        self._faults = faults
        self._made_with = options

    def for_reconcile(self, cause: Cause) -> FaultyClient:
        """Return the same client for one reconcile."""
        return FaultyClient(self._faults, self.engine, self._run, self._requester, cause, **self._made_with)

    def create(self, obj: Object) -> Object:
        """Create, or fail."""
        return self._faults.suffer("create", obj, lambda: super(FaultyClient, self).create(obj))

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Update, or fail."""
        return self._faults.suffer("update", obj, lambda: super(FaultyClient, self).update(obj, subresource))

    def apply(self, obj: Object, manager: str, *, force: bool = False, subresource: str = "") -> Object:
        """Apply, or fail."""
        apply = super().apply
        verb = "status" if subresource == "status" else "apply"
        return self._faults.suffer(verb, obj, lambda: apply(obj, manager, force=force, subresource=subresource))

    def delete(self, obj: Object, propagation: str | None = None, *, grace: int | None = None) -> None:
        """Delete, or fail."""
        delete = super().delete
        self._faults.suffer("delete", obj, lambda: delete(obj, propagation, grace=grace))

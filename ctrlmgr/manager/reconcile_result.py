"""The contract between a controller and its reconciler.

A reconciler is level-triggered (controller-runtime's `reconcile.Reconciler`): it receives a key and no event, reads the
current state, and writes the difference to the desired state. The reconciler may be called for a key without a
difference, more than once for one change, and once for many changes. The controller guarantees two things. The
controller never calls the reconciler for one key on two workers at once. A key whose object changes after a call began
is reconciled again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from ctrlmgr.api.resource import Key
from ctrlmgr.client import ReconcileClient


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a successful reconcile: the key is reconciled again in `requeue_after` seconds.

    If this is None, it is reconciled after the next change. If the reconcile has written nothing, the requeued
    reconcile receives its triggers.
    """

    requeue_after: float | None = None


C = TypeVar("C", bound=ReconcileClient)
C_contra = TypeVar("C_contra", contravariant=True)


class Reconciler(Protocol[C_contra]):
    """Brings the objects of a key to their desired state; it writes through a client of the type parameter."""

    def reconcile(self, key: Key, client: C_contra) -> Result | None:
        """Read the caches, and write the difference through `client`.

        If it raises, the key is retried with rate limits; `TerminalError` is not retried.
        """


@runtime_checkable
class Stops(Protocol):
    """A reconciler that keeps components running, such as daemons."""

    def on_stop(self) -> None:
        """End these components; called when the workers of the controller have ended."""


@runtime_checkable
class StartsWith(Protocol):
    """A reconciler with additional keys at the start, such as deleted objects whose cleanup has not finished."""

    def on_start(self) -> Iterable[Key]:
        """Return the keys to reconcile first; called once, after the caches have synced."""

"""The interface between a controller and its reconciler.

A reconciler is level-triggered (controller-runtime's `reconcile.Reconciler`): it receives a key and no event, reads the
current state, and writes the difference to the desired state. The controller may call the reconciler for a key whose
state is already the desired state, more than once for one change, or once for many changes. The controller guarantees
two things. The controller never calls the reconciler for one key on two workers at once. If an object changes after the
reconcile of its key began, the key is reconciled again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from ctrlmgr.api.resource import Key
from ctrlmgr.client import ReconcileClient


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a successful reconcile, which says that the key is reconciled again in `requeue_after` seconds.

    If `requeue_after` is None, the key is reconciled again only after the next change. If a reconcile has written
    nothing, the requeued reconcile receives the triggers of the earlier reconcile.
    """

    requeue_after: float | None = None


C = TypeVar("C", bound=ReconcileClient)
C_contra = TypeVar("C_contra", contravariant=True)


class Reconciler(Protocol[C_contra]):
    """Brings the objects of a key to their desired state.

    The type parameter is the type of the client with which the reconciler writes.
    """

    def reconcile(self, key: Key, client: C_contra) -> Result | None:
        """Read the caches, and write the difference to the desired state through `client`.

        If `reconcile` raises an error, the controller retries the key with rate limits. After a `TerminalError`, the
        controller does not retry the key.
        """


@runtime_checkable
class Stops(Protocol):
    """A reconciler that keeps components running, such as daemons."""

    def on_stop(self) -> None:
        """End the components that the reconciler keeps running; called when the controller's workers have ended."""


@runtime_checkable
class StartsWith(Protocol):
    """A reconciler that has additional keys at the start, such as deleted objects whose cleanup has not finished."""

    def on_start(self) -> Iterable[Key]:
        """Return the keys to reconcile first; the controller calls this method once, after the caches have synced."""

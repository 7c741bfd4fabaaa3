"""The contract between a controller and the code that knows what its objects should look like.

A reconciler is level-triggered (controller-runtime's `reconcile.Reconciler`): it gets a key and no event, reads
what is there now, and makes it so. It may be called for a key that needs nothing, more than once for one change,
and once for many changes; the controller promises that it is never called for one key by two workers at once,
and that a key whose object changed after a call began is given to another call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from ctrlmgr.api.resource import Key
from ctrlmgr.client import ReconcileClient


@dataclass(frozen=True, slots=True)
class Result:
    """How a reconcile that succeeded goes on: again in `requeue_after` seconds, or (None) with the next change.

    One that comes again is the same matter: the triggers for which nothing has been written are the next one's too.
    """

    requeue_after: float | None = None


C = TypeVar("C", bound=ReconcileClient)
C_contra = TypeVar("C_contra", contravariant=True)


class Reconciler(Protocol[C_contra]):
    """Makes the objects behind a key what they should be, through the kind of client that it needs."""

    def reconcile(self, key: Key, client: C_contra) -> Result | None:
        """Read the caches, write the difference through `client`.

        Raising has the key tried again, rate limited; `TerminalError` says that trying again is pointless.
        """


@runtime_checkable
class StartsWith(Protocol):
    """A reconciler that has work besides what its watches bring, such as leftovers of objects that are gone."""

    def on_start(self) -> Iterable[Key]:
        """Return the keys to reconcile first; called once, when the caches have synced."""

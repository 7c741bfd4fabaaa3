"""How a reconciler changes objects: the protocols, whatever is behind them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol, Self

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog.event import Cause


class Client(Protocol):
    """What a reconciler writes through; it reads from listers."""

    def create(self, obj: Object) -> Object:
        """Store a new object under a new uid and return it as stored.

        Raises `AlreadyExists`, `NotFound` (its namespace), `NamespaceTerminating`, and what `append` raises.
        """

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Replace the object read at `obj.revision`, or its `status` and so on, and return it as stored.

        When nothing changes nothing is written; when the last finalizer of a terminating object goes, the
        object goes. Raises `NotFound`, `Conflict` (it has changed since), and what `append` raises.
        """

    def delete(self, obj: Object) -> None:
        """Delete the object read at `obj.revision`, or mark it as terminating if it has finalizers.

        Raises `NotFound`, `Conflict` (it has changed since), and what `append` raises.
        """


class PatchClient(Client, Protocol):
    """A client that also patches."""

    def patch(self, obj: Object, patch: Mapping[str, Any], subresource: str = "") -> Object:
        """Patch the object of this name by a strategic merge patch, and return it as stored; raises `NotFound`."""


class ReconcileClient(Client, Protocol):
    """What a controller is made with: a client that can be had for one reconcile."""

    @property
    def wrote(self) -> bool:
        """Whether this client appended anything, or may have (`OutcomeUnknown`)."""

    @property
    def changed_by(self) -> Collection[str]:
        """What has changed this client's objects on their way into the log, in words."""

    def for_reconcile(self, cause: Cause) -> Self:
        """Return the same client for one reconcile: its appends carry `cause`, its `wrote` starts False.

        Raises `Fenced` when nothing may be written, as this process does not lead.
        """

"""The protocols through which reconcilers change objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol, Self

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog.event import Cause


class Client(Protocol):
    """Writes objects for a reconciler, which reads objects from listers."""

    def create(self, obj: Object) -> Object:
        """Store a new object with a new uid and return it as stored.

        Raises `AlreadyExists`, `NotFound` (its namespace does not exist), `NamespaceTerminating`, and the errors of the
        log's `append`.
        """

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Replace the object read at `obj.revision`, or a subresource such as `status`, and return it as stored.

        If nothing differs, nothing is written. If the update removes the last finalizer of a terminating object, the
        object is deleted. Raises `NotFound`, `Conflict` (the object has changed since it was read), and the errors of
        the log's `append`.
        """

    def delete(self, obj: Object) -> None:
        """Delete the object read at `obj.revision`, or mark it as terminating if it has finalizers.

        Raises `NotFound`, `Conflict` (the object has changed since it was read), and the errors of the log's `append`.
        """


class PatchClient(Client, Protocol):
    """A client that can also patch objects."""

    def patch(self, obj: Object, patch: Mapping[str, Any], subresource: str = "") -> Object:
        """Apply a strategic merge patch to the object with this name, and return it as stored; raises `NotFound`."""


class ReconcileClient(Client, Protocol):
    """A controller's client, which can be bound to one reconcile."""

    @property
    def wrote(self) -> bool:
        """Return whether this client appended anything, or may have (`OutcomeUnknown`)."""

    @property
    def changed_by(self) -> Collection[str]:
        """The names of the admission plugins that changed objects while this client wrote them."""

    def for_reconcile(self, cause: Cause) -> Self:
        """Return the client for one reconcile: its appends carry `cause`, its `wrote` starts False.

        Raises `Fenced` if this process does not lead.
        """

"""The protocols through which reconcilers write objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol, Self

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog.event import Cause


class Client(Protocol):
    """Writes objects for a reconciler; the reconciler reads objects from listers."""

    def create(self, obj: Object) -> Object:
        """Store a new object with a new uid and return the stored object.

        Raises `AlreadyExists`, `NotFound` if the namespace does not exist, `NamespaceTerminating` if the namespace is
        terminating, and the errors of the log's `append`.
        """

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Replace the object read at `obj.revision`, or a subresource such as `status`, and return the stored object.

        If `obj` equals the stored object, the client writes nothing. An update that removes the last finalizer of a
        terminating object deletes the object. Raises `NotFound` if the object does not exist, `Conflict` if the object
        has changed since the caller read it, and the errors of the log's `append`.
        """

    def delete(self, obj: Object) -> None:
        """Delete the object read at `obj.revision`; an object with finalizers is only marked as terminating.

        Raises `NotFound` if the object does not exist, `Conflict` if the object has changed since the caller read it,
        and the errors of the log's `append`.
        """


class PatchClient(Client, Protocol):
    """A client that can also patch objects."""

    def patch(self, obj: Object, patch: Mapping[str, Any], subresource: str = "") -> Object:
        """Apply a strategic merge patch to the object with this name, and return the stored object.

        Raises `NotFound` if the object does not exist.
        """


class ReconcileClient(Client, Protocol):
    """A controller's client; `for_reconcile` derives a client for one reconcile."""

    @property
    def wrote(self) -> bool:
        """Return whether this client appended an event, or may have done so (`OutcomeUnknown`)."""

    @property
    def changed_by(self) -> Collection[str]:
        """The names of the admission plugins that changed objects while this client wrote them."""

    def for_reconcile(self, cause: Cause) -> Self:
        """Return the client for one reconcile; each event that the returned client appends contains `cause`.

        Raises `Fenced` if this process is not the leader.
        """

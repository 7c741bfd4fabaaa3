"""The protocol between the engine and its drivers: operations are generators that yield commands.

The engine decides; it neither waits nor does I/O. A driver runs an `Operation` by sending the results of commands to
it, until the operation returns its result or raises an `ApiError`. There are two drivers: the server's, on an event
loop, and `engine.blocking_driver`, on the calling thread. Both must do the following for each command:

- `Append`: append the proposals durably to the log, and send the events. If the log refuses or fails, first update the
  cacher to the log's head. Then throw the log's error, so that the operation decides again on the current state.
- `Appends`: make all these appends at the same time. Send a list with the events, or the error, of each append.
- `Read`: call `call` where blocking is allowed. Send its result, or throw its error.
- `Compute`: call `call` on any thread. Send its result, or throw its error; throw `RequestTimeout` if it took too long.
- `Refresh`: update the cacher to the newest revision that the log had, from any writer, when the command was yielded.
  Send None.
- `Await`: update the cacher to `revision`; give up after `timeout` seconds. Send None in both cases.
- `CallOut`: call other processes, and send their replies; other requests continue meanwhile.
- `Consult`: await the coroutine of `call` on the server's event loop. Send its result, or throw its error.

Between commands, an operation runs on the thread that owns the cacher. After any command, the state of the cacher may
be newer.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.calls.call import CallOut
from ctrlmgr.engine.deferred_proposals import DeferredProposals
from ctrlmgr.engine.kind import Kind
from ctrlmgr.eventlog.event import Author, Cause, Outcome, Proposal

T = TypeVar("T")


class Append(NamedTuple):
    """Append proposals to the log; the driver sends the events."""

    proposals: Sequence[Proposal]
    author: Author
    late: Sequence[DeferredProposals] = ()
    """Proposals that are computed at the moment of the append and appended too; their events are not sent."""
    cause: Cause | None = None
    """The cause of the write, if the driver has no other cause."""


class Appends(NamedTuple):
    """Make several appends separately, all at the same time, so that the log can commit them together.

    The appends must not have deferred proposals.
    """

    appends: Sequence[Append]


class Read(NamedTuple):
    """Call a function that may block; the driver sends its result."""

    call: Callable[[], Any]


class Compute(NamedTuple):
    """Call a long computation that uses only its arguments; the driver sends its result."""

    call: Callable[[], Any]


class Refresh(NamedTuple):
    """Update the cacher to the log's head."""


class Await(NamedTuple):
    """Update the cacher to a revision that the log may not have reached yet, within `timeout` seconds."""

    revision: Revision
    timeout: float


class Consult(NamedTuple):
    """Wait for another process's decision; `call` returns the coroutine that requests the decision."""

    call: Callable[[], Coroutine[Any, Any, Any]]


REFRESH = Refresh()
DONE = Outcome(0, "ok")
"""The outcome of a cause that an append finishes."""

Command: TypeAlias = Append | Appends | Read | Compute | Refresh | Await | CallOut | Consult
Operation: TypeAlias = Generator[Command, Any, T]


class Target(NamedTuple):
    """The target of a request.

    `namespace` is empty for cluster-scoped kinds. `name` is empty if only the body contains it.
    """

    kind: Kind
    namespace: str
    name: str
    subresource: str = ""


class Answer(NamedTuple):
    """The result of a write: either an `object` in the served version, or a `status`."""

    code: int
    object: Object | None = None
    status: Unstructured | None = None
    warnings: tuple[str, ...] = ()
    """The texts of the response's `Warning` headers; those of an error are in `ApiError.warnings`."""
    annotations: Mapping[str, str] = {}
    """Annotations of the audit event; those of an error are in `ApiError.annotations`."""
    changed_by: tuple[str, ...] = ()
    """Descriptions of the plugins and webhooks that changed the object."""


class Listing(NamedTuple):
    """A list, or a page of a list, at `revision`."""

    revision: Revision
    objects: Sequence[Object]
    continue_token: str = ""
    remaining: int | None = None
    """The number of objects that follow this page; None if it is unknown or zero."""

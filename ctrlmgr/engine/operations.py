"""The protocol between the engine and its drivers: operations are generators that yield commands.

The engine only makes decisions; it neither waits nor does I/O. A driver runs an `Operation` by sending the results of
commands to it, until the operation returns its result or raises an `ApiError`. ctrlmgr has three drivers.
`server.event_loop_driver` uses an event loop, `client.controller_driver` uses a controller's thread, and
`engine.blocking_driver` uses the caller's thread. Every driver must do the following for each command:

- `Append`: append the proposals durably to the log, and send the events. If the log refuses the append or fails, first
  update the cacher to the log's head. After that, throw the log's error into the operation, so that the operation
  decides again on the current state.
- `Appends`: make all appends of the command at the same time. Send a list to the operation that contains the events or
  the error of each append.
- `Read`: call the function `call` on a thread that may block. Send the result of `call`, or throw its error.
- `Compute`: call the function `call` on any thread. Send the result of `call`, or throw its error; throw
  `RequestTimeout` if the computation took too long.
- `Refresh`: update the cacher to the newest revision that the log had, from any writer, when the command was yielded.
  Send None.
- `Await`: update the cacher to `revision`; give up after `timeout` seconds. Send None, whether the revision was reached
  or not.
- `CallOut`: call other processes, and send their replies; other requests continue meanwhile.
- `Consult`: await the coroutine that `call` returns on the server's event loop. Send the result of `call`, or throw its
  error.

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
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.eventlog.event import Author, Cause, Outcome, Proposal

T = TypeVar("T")


class Append(NamedTuple):
    """The command to append proposals to the log; the driver sends the appended events."""

    proposals: Sequence[Proposal]
    author: Author
    late: Sequence[DeferredProposals] = ()
    """Proposals that are computed at the time of the append and appended, too; their events are not sent."""
    cause: Cause | None = None
    """The cause of the write, if the driver has no other cause."""


class Appends(NamedTuple):
    """The command to make several appends separately, all at the same time, so that the log can commit them together.

    The appends must not have deferred proposals.
    """

    appends: Sequence[Append]


class Read(NamedTuple):
    """The command to call a function that may block; the driver sends the function's result."""

    call: Callable[[], Any]


class Compute(NamedTuple):
    """The command to run a long computation that uses only its arguments; the driver sends its result."""

    call: Callable[[], Any]


class Refresh(NamedTuple):
    """The command to update the cacher to the log's head."""


class Await(NamedTuple):
    """The command to update the cacher to a revision that the log may reach later, within `timeout` seconds."""

    revision: Revision
    timeout: float


class Consult(NamedTuple):
    """The command to wait for another process's decision; `call` returns the coroutine that requests the decision."""

    call: Callable[[], Coroutine[Any, Any, Any]]


REFRESH = Refresh()
DONE = Outcome(0, "ok")
"""The outcome with which an append marks a cause as finished."""

Command: TypeAlias = Append | Appends | Read | Compute | Refresh | Await | CallOut | Consult
Operation: TypeAlias = Generator[Command, Any, T]


def drive(operation: Operation[T], perform: Callable[[Command], Any]) -> T:
    """Run an operation on the calling thread and return its result; `perform` performs each of its commands.

    An error that `perform` raises is thrown into the operation. Raises the operation's errors.
    """
    try:
        command = next(operation)
        while True:
            try:
                outcome = perform(command)
            except CtrlmgrError as error:
                command = operation.throw(error)
            else:
                command = operation.send(outcome)
    except StopIteration as stop:
        result: T = stop.value
        return result


class Target(NamedTuple):
    """The target of a request: kind, namespace, name and subresource.

    The namespace of a target is empty for cluster-scoped kinds. The name of a target is empty if only the request's
    body contains the name.
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
    """The warnings for the response's `Warning` headers; the warnings of an error are in `ApiError.warnings`."""
    annotations: Mapping[str, str] = {}
    """Annotations for the audit event; the annotations of an error are in `ApiError.annotations`."""
    changed_by: tuple[str, ...] = ()
    """Descriptions of the plugins and webhooks that changed the object."""


class Listing(NamedTuple):
    """The result of a list request at `revision`: the whole list, or one page of it."""

    revision: Revision
    objects: Sequence[Object]
    continue_token: str = ""
    remaining: int | None = None
    """The number of objects that follow this page; None if it is unknown or zero."""

"""What the engine and its runner say to each other: operations are generators that yield commands.

The engine decides; it neither waits nor does I/O. An `Operation` is driven by sending it what its commands ask for
until it returns its result or raises an `ApiError`. There are two drivers: the server's, on an event loop, and
`engine.drive`, on the calling thread. Both owe an operation this:

- `Append`: append the proposals to the log, durably, and send the events. If the log refuses or fails, first bring
  the cacher up to the log's head, then throw what the log raised: the operation decides again on what is true now.
- `Appends`: append each of these, at the same time, and send a list that has for each the events, or what was raised.
- `Read`: call `call` where blocking is allowed and send its result, or throw what it raised.
- `Compute`: call `call`, anywhere, and send its result, or throw what it raised; `RequestTimeout` if it took too long.
- `Refresh`: bring the cacher to the newest revision the log had when the command came, from any writer; send None.
- `Await`: bring the cacher to `revision`; after `timeout` seconds give up. Send None either way.
- `CallOut`: call other processes, and send their replies; nothing else waits for that.
- `Consult`: wait for what `call` begins, on the server's event loop, and send its result, or throw what it raised.

Between the commands an operation runs on one thread, the cacher's; after any command the cacher may have moved on.
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
    """Append to the log; the driver sends the events."""

    proposals: Sequence[Proposal]
    author: Author
    late: Sequence[DeferredProposals] = ()
    """What is decided in the moment of the append and goes along with it; the driver sends no events of that."""
    cause: Cause | None = None
    """What has made it what it is, where the driver knows of no other cause."""


class Appends(NamedTuple):
    """Append each of these for itself, all at the same time, so that the log can commit them together.

    None of them has anything that is decided late.
    """

    appends: Sequence[Append]


class Read(NamedTuple):
    """Call something that may block; the driver sends what it returns."""

    call: Callable[[], Any]


class Compute(NamedTuple):
    """Call what takes long for what it is given, and touches nothing but that; the driver sends what it returns."""

    call: Callable[[], Any]


class Refresh(NamedTuple):
    """Bring the cacher to the log's head."""


class Await(NamedTuple):
    """Bring the cacher to a revision that the log may not have reached yet, within `timeout` seconds."""

    revision: Revision
    timeout: float


class Consult(NamedTuple):
    """Wait for another process' decision, which `call` begins to ask for."""

    call: Callable[[], Coroutine[Any, Any, Any]]


REFRESH = Refresh()
DONE = Outcome(0, "ok")
"""How a cause ends that an append brings along: with the append."""

Command: TypeAlias = Append | Appends | Read | Compute | Refresh | Await | CallOut | Consult
Operation: TypeAlias = Generator[Command, Any, T]


class Target(NamedTuple):
    """What a request is about: `namespace` is empty for cluster-scoped kinds, `name` where the body has it."""

    kind: Kind
    namespace: str
    name: str
    subresource: str = ""


class Answer(NamedTuple):
    """How a write ended: with an `object`, in the served version, or a `status`; never both."""

    code: int
    object: Object | None = None
    status: Unstructured | None = None
    warnings: tuple[str, ...] = ()
    """What else the caller is told in `Warning` headers; an error carries its own in `ApiError.warnings`."""
    annotations: Mapping[str, str] = {}
    """What the audit log is told of the decision; an error carries its own in `ApiError.annotations`."""
    changed_by: tuple[str, ...] = ()
    """What has changed the object on its way, in words."""


class Listing(NamedTuple):
    """A list, or a page of one, as of `revision`."""

    revision: Revision
    objects: Sequence[Object]
    continue_token: str = ""
    remaining: int | None = None
    """How many objects come after this page; None when that is not known, or none do."""

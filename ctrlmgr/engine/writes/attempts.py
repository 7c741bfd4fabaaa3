"""Decides a write on the cacher's state, appends it, and decides the write again if the log's state is newer.

Guarantees:
- The log checks the revision of each proposal, so an append is always based on the current stored state.
- A write is never refused, or answered as unchanged, because of an outdated state. Before a write is refused or
  answered as unchanged, the cacher is updated to the log's head. If the cacher's state has changed, the write is
  decided again (etcd3 `GuaranteedUpdate`).
- The number of attempts is limited: after `limit` conflicts, the write is refused with the log's error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.clock import parse_time
from ctrlmgr.engine.admission_attributes import Changer
from ctrlmgr.engine.api_errors import already_exists, conflict
from ctrlmgr.engine.deferred_proposals import DeferredProposals
from ctrlmgr.engine.operations import REFRESH, Answer, Append, Operation
from ctrlmgr.engine.writes.object_size import refuse_large
from ctrlmgr.engine.writes.write_context import Request
from ctrlmgr.errors import AlreadyExists, ApiError, Conflict, NotFound
from ctrlmgr.eventlog.event import Cause, Event, EventType, Proposal

RETRIES = 5
"""The maximum number of attempts of an update that conflicts with other writes (`MaxRetryWhenPatchConflicts`)."""

_SHARED_RETRIES = 100
"""The maximum number of attempts of a write that conflicts with many other writes, such as an allocation of one of the
last free addresses.
"""


ADMISSION = "admission"
"""The name of the controller in the cause that the log stores for a write that admission has changed."""


class Decision(NamedTuple):
    """The result of an attempt: the proposals to append, and the response after the append."""

    code: int
    proposals: Sequence[Proposal] = ()
    """The proposals to append; empty if the write changes nothing."""
    shown: int | None = None
    """The index of the proposal whose event contains the object of the response; None if the response is `object` or
    `status`.
    """
    object: Object | None = None
    """The object of the response, in its stored form."""
    status: Unstructured | None = None
    warnings: Sequence[str] = ()
    late: Sequence[DeferredProposals] = ()
    """Proposals that are computed when the write is appended."""
    changed_by: Sequence[Changer] = ()
    """The plugins and webhooks that changed the object."""


Decide = Callable[[], Operation[Decision]]
"""A function that makes one attempt."""


def decide_and_append(request: Request, decide: Decide, *, limit: int) -> Operation[Answer]:
    """Decide a write and append the decision, up to `limit` times; return the response."""
    try:
        tries = 0
        while tries < limit:
            tries += 1
            decision = yield from _decided(request, lambda: _sized(request, decide))
            if not decision.proposals:
                return (yield from _answer(request, decision, ()))
            try:
                author, cause = request.requester.author, _cause(request, decision.changed_by)
                events: Sequence[Event] = yield Append(decision.proposals, author, decision.late, cause)
            except (AlreadyExists, Conflict, NotFound):
                _refuse_if_taken(request, decision)
                limit = max(limit, _SHARED_RETRIES) if decision.late or len(decision.proposals) > 1 else limit
                continue
            return (yield from _answer(request, decision, events))
        raise conflict(request.plan.resource, request.target.name)
    except ApiError as error:
        error.warnings = error.warnings or request.all_warnings()
        error.annotations = request.annotations
        raise


def _sized(request: Request, decide: Decide) -> Operation[Decision]:
    """Decide a write; raises `RequestEntityTooLarge` if the decision makes an object too large."""
    decision = yield from decide()
    refuse_large(request.state, decision.proposals, request.target.subresource)
    return decision


def _cause(request: Request, changed_by: Sequence[Changer]) -> Cause | None:
    """Return the cause that names the plugins and webhooks that changed a write; None for an unchanged write."""
    return _cause_of(tuple(changed_by), request.now) if changed_by else None


@lru_cache(maxsize=256)
def _cause_of(changed_by: tuple[Changer, ...], now: str) -> Cause:
    """Return one cause for all writes that the same plugins and webhooks changed.

    One row in the log for each write would cost too much.

    The log keeps the first cause with this id, together with the time `now`.
    """
    what = ", ".join(dict.fromkeys(each.what for each in changed_by))
    triggers = tuple(sorted({each.revision for each in changed_by if each.revision}))
    digest = blake2b(f"{what} {triggers}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest) >> 1 or 1
    return Cause(number, ADMISSION, what, attempt=1, started_at=parse_time(now), triggers=triggers)


def _decided(request: Request, decide: Decide) -> Operation[Decision]:
    """Decide one attempt at a write.

    Decide it again if the first decision, made on an outdated state, refused the write or changed nothing. If another
    process, such as a webhook, refused the write, the refusal is final. If the write has called other processes, the
    write is decided again only if the object itself has changed, as in Kubernetes (etcd3 `GuaranteedUpdate`). A dry
    run, which never appends, is decided on the newest state from the beginning.
    """
    if request.options.dry_run:
        yield REFRESH
        return (yield from decide())
    state = request.state
    before, seen = state.revision, _version(request)
    refusal: ApiError | None = None
    try:
        decision = yield from decide()
        if decision.proposals:
            return decision
    except ApiError as error:
        if error.is_final:
            raise
        refusal = error
    yield REFRESH
    if state.revision != before and (not request.asked or _version(request) != seen):
        return (yield from decide())
    if refusal is not None:
        raise refusal
    return decision


def _version(request: Request) -> Revision:
    there = request.current()
    return 0 if there is None else there.revision


def _refuse_if_taken(request: Request, decision: Decision) -> None:
    """Raise `AlreadyExists` if another object was created with the same name while the creation called webhooks.

    If the function did not raise `AlreadyExists`, the engine would decide the creation again and call the webhooks
    again, with the same result.
    """
    if not request.asked or request.upserts or decision.shown is None:
        return
    made, there = decision.proposals[decision.shown], request.current()
    if made.type is EventType.ADDED and there is not None and there.key == made.object.key:
        raise already_exists(request.plan.resource, there.name, terminating=there.is_terminating)


def _answer(request: Request, decision: Decision, events: Sequence[Event]) -> Operation[Answer]:
    obj = decision.object if decision.shown is None or not events else events[decision.shown].object
    shown = (yield from request.shown(obj)) if obj is not None else None
    changed_by = tuple([each.what for each in decision.changed_by])
    return Answer(decision.code, shown, decision.status, tuple(decision.warnings), request.annotations, changed_by)

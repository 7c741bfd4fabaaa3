"""Deciding until it holds: a write is decided on the cacher's state, and again if the log knows better.

Guarantees:
- What is appended fits what was stored when it was appended: the log checks each proposal's revision.
- Nothing is refused, and nothing called unchanged, on a state that was out of date: before either answer the cacher is
  brought up to the log, and if that changed anything the decision is made once more (etcd3 `GuaranteedUpdate`).
- It ends: a write that keeps losing to others is refused after `limit` tries, with what the log said.
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
from ctrlmgr.engine.attributes import Changer
from ctrlmgr.engine.deferred_proposals import DeferredProposals
from ctrlmgr.engine.operations import REFRESH, Answer, Append, Operation
from ctrlmgr.engine.refusals import already_exists, conflict
from ctrlmgr.engine.writes.request import Request
from ctrlmgr.engine.writes.sizes import refuse_large
from ctrlmgr.errors import AlreadyExists, ApiError, Conflict, NotFound
from ctrlmgr.eventlog.event import Cause, Event, EventType, Proposal

RETRIES = 5
"""How often an update that lost to others is tried (`MaxRetryWhenPatchConflicts`)."""

_SHARED_RETRIES = 100
"""How often a write is tried that changes or claims what many others do at the same time: one of the last addresses."""


ADMISSION = "admission"
"""What the log calls the cause of a write that was changed on its way."""


class Decision(NamedTuple):
    """What an attempt has come to: what to append, and how to answer once it is."""

    code: int
    proposals: Sequence[Proposal] = ()
    """Empty if nothing is to change."""
    shown: int | None = None
    """Which of the proposals' events has the object to answer with; None for `object` or `status`."""
    object: Object | None = None
    """As stored."""
    status: Unstructured | None = None
    warnings: Sequence[str] = ()
    late: Sequence[DeferredProposals] = ()
    """What goes into the append and is decided only then."""
    changed_by: Sequence[Changer] = ()
    """Who has changed the object on its way."""


Decide = Callable[[], Operation[Decision]]
"""Makes one attempt."""


def decide_and_append(request: Request, decide: Decide, *, limit: int) -> Operation[Answer]:
    """Decide and append, up to `limit` times, and answer."""
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
        error.warnings = error.warnings or request.told()
        error.annotations = request.annotations
        raise


def _sized(request: Request, decide: Decide) -> Operation[Decision]:
    """Decide; raises `RequestEntityTooLarge` if that makes an object larger than it may be."""
    decision = yield from decide()
    refuse_large(request.state, decision.proposals, request.target.subresource)
    return decision


def _cause(request: Request, changed_by: Sequence[Changer]) -> Cause | None:
    """Return a cause that names who changed a write on its way, None for one that is as it was sent."""
    return _cause_of(tuple(changed_by), request.now) if changed_by else None


@lru_cache(maxsize=256)
def _cause_of(changed_by: tuple[Changer, ...], now: str) -> Cause:
    """Return the one cause of all writes that the same have changed: a row for each write would cost too much.

    The log keeps the first of them, whose time was `now`.
    """
    what = ", ".join(dict.fromkeys(each.what for each in changed_by))
    triggers = tuple(sorted({each.revision for each in changed_by if each.revision}))
    digest = blake2b(f"{what} {triggers}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest) >> 1 or 1
    return Cause(number, ADMISSION, what, attempt=1, started_at=parse_time(now), triggers=triggers)


def _decided(request: Request, decide: Decide) -> Operation[Decision]:
    """Decide; once more if that refused or changed nothing, but the state was behind.

    What another process refused is refused: asking it again would be another question. Where others were asked, it is
    the object alone that must have changed since to have them asked again, as in Kubernetes (etcd3 `GuaranteedUpdate`).
    A dry run, which never appends, is decided on the newest state from the first.
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
    """Refuse a creation that lost its name to another, where deciding again would ask others again to no avail."""
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

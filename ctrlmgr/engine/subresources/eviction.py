"""`pods/NAME/eviction`, which deletes a pod if the pod's PodDisruptionBudget allows the deletion.

Guarantees:
- The pod's condition, its deletion and the decrement of the budget are in one append.
- The error of a refused eviction contains the number of healthy pods, which the disruption controller counts. If the
  controller has not yet processed a recent eviction, the request waits until the controller has processed it, or until
  nothing has changed for half a second.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api import status_responses
from ctrlmgr.engine.api_errors import not_found
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.engine.operations import Answer, Await, Operation, Target
from ctrlmgr.engine.request_options import Body, Requester, WriteOptions, check_delete, delete_options
from ctrlmgr.engine.subresources.handler import Handler, admit_body, decode
from ctrlmgr.engine.verbs.delete import decide_delete
from ctrlmgr.engine.writes.attempts import RETRIES, Decision, decide_and_append
from ctrlmgr.engine.writes.write_context import Request, Requests
from ctrlmgr.errors import TooManyRequests, UnknownError
from ctrlmgr.kinds.core.pod.subresources import Evicted, evict, has_uncounted

_EVICTION = GroupVersionKind("policy", "v1", "Eviction")

_PAUSE = 0.02
"""The pause in seconds before the server decides a refused eviction again, if the state does not change earlier."""

_IDLE = 25
"""The maximum number of pauses without a change before the server finally refuses an eviction."""

_LOOKS = 500
"""The maximum number of decisions about one eviction, even if the state keeps changing."""


class EvictionHandler(Handler):
    """Evicts pods; the response is a Status."""

    def create(
        self, engine: Requests, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Evict a pod."""
        request = engine.request(target, options, requester)
        eviction = decode(engine, _EVICTION, body, request)
        dry_run = (eviction.get("deleteOptions") or {}).get("dryRun") or []
        if options.dry_run and dry_run and dry_run != ["All"]:
            raise UnknownError(f"Non-matching dry-run options in request and content: [All] and [{' '.join(dry_run)}]")
        request.options = options._replace(dry_run=options.dry_run or bool(dry_run))
        return (yield from decide_and_append(request, lambda: _evict(request, eviction), limit=RETRIES))


def _evict(request: Request, given: dict[str, Any]) -> Operation[Decision]:
    eviction = yield from admit_body(request, given, _EVICTION)
    evicted = yield from _decided(request, eviction)
    options = delete_options(evicted.options)
    check_delete(options)
    decision = yield from decide_delete(request, options, request.plan.encode(evicted.pod), admitted=True)
    proposals = list(decision.proposals)
    if evicted.budget is not None and proposals:
        proposals.append(evicted.budget)
    return decision._replace(
        code=201, proposals=proposals, shown=None, object=None, status=status_responses.success(code=201)
    )


def _decided(request: Request, eviction: dict[str, Any]) -> Operation[Evicted]:
    """Decide an eviction, after the disruption controller has processed earlier evictions."""
    idle = looks = 0
    while True:
        current = request.current()
        if current is None:
            raise not_found(request.plan.resource, request.target.name)
        ctx = request.context()
        try:
            return evict(ctx, current, eviction)
        except TooManyRequests:
            looks += 1
            if idle == _IDLE or looks == _LOOKS or not has_uncounted(ctx, current):
                raise
        seen = request.state.revision
        yield Await(seen + 1, _PAUSE)
        idle += request.state.revision == seen

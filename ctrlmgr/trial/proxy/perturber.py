"""Injects the perturbations of a plan into the operator's requests, and learns what the operator writes.

Guarantees: each perturbation happens once. It happens at the first write that the plan names, counted in this run. The
answers have the codes, reasons and headers of a Kubernetes API server.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlencode

from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import Clock
from ctrlmgr.trial.perturbation_plan import Perturbation, Plan
from ctrlmgr.trial.proxy.operator_proxy import Forward
from ctrlmgr.trial.proxy.operator_request import Answer, Call, ConnectionDropped, Request, refusal
from ctrlmgr.trial.proxy.watch_streams import WatchStreams


class LearnedWrite(NamedTuple):
    """A write of the operator, with the number of equal writes so far, including this one."""

    call: Call
    occurrence: int
    code: int
    is_conditional: bool


class Hands(NamedTuple):
    """The acts of the perturber outside of the proxy.

    `crash` kills the operator, which starts again; `touch` changes an annotation of the object at a URL path as another
    client; `head` returns the newest revision of the log.
    """

    crash: Callable[[], None]
    touch: Callable[[str], None]
    head: Callable[[], int]


class Perturber:
    """Decides what happens to the operator's requests in one run; thread-safe."""

    def __init__(self, plan: Plan, watches: WatchStreams, hands: Hands, *, clock: Clock) -> None:
        """Inject the perturbations of `plan`."""
        self.writes: list[LearnedWrite] = []
        """The writes of the operator that matter for the end state, in their order."""
        self.rights: dict[str, None] = {}
        """The rights that the operator has used, in the order of their first use."""
        self._watches = watches
        self._hands = hands
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[Call] = Counter()
        self._at_writes = {each: 0 for each in plan.perturbations if each.write}
        """For each perturbation of a write that has not happened yet, the number of writes that it names so far."""
        self._taken: dict[Perturbation, float | None] = {each: None for each in plan.perturbations if each.right}
        """For each right to take, the time at which it is given back; None before its first use."""
        self._stale_revision = 0
        self._stale_seconds = 0.0
        self._ends_at = 0.0
        for each in plan.perturbations:
            if each.kind == "late-events":
                watches.delays[Resource.parse(each.resource)] = each.seconds
            watches.drops_bookmarks |= each.kind == "no-bookmarks"

    @property
    def unreached(self) -> tuple[Perturbation, ...]:
        """The perturbations that have not happened, because the operator has not sent the request."""
        with self._lock:
            return (*self._at_writes, *(each for each, until in self._taken.items() if until is None))

    def is_over(self) -> bool:
        """Whether no perturbation is active at this moment; perturbations that have not begun are ignored."""
        with self._lock:
            return not self._stale_seconds and self._clock.monotonic() >= self._ends_at

    def answer(self, request: Request, forward: Forward) -> Answer:
        """Answer a request, with the perturbation that the plan has for it."""
        if refused := self._refused(request):
            return refused
        if not request.is_tracked_write:
            return forward(self._stale(request))
        with self._lock:
            call = request.call
            self._counts[call] += 1
            occurrence = self._counts[call]
            perturbation = self._due(call)
        if perturbation is None:
            return self._learned(request, call, occurrence, forward(request))
        answer = _ACTIONS[perturbation.kind](self, perturbation, request, forward)
        return self._learned(request, call, occurrence, answer)

    def watched(self, request: Request) -> Request | Answer:
        """Return the watch that is sent to the server, or the refusal."""
        if refused := self._refused(request):
            return refused
        self._stale(request)
        return request

    def _learned(self, request: Request, call: Call, occurrence: int, answer: Answer) -> Answer:
        with self._lock:
            self.writes.append(LearnedWrite(call, occurrence, answer.code, request.is_conditional))
        return answer

    def _due(self, call: Call) -> Perturbation | None:
        """Count a write, and return the perturbation that happens to it."""
        found = None
        for each in [*self._at_writes]:
            if _names(Call.parse(each.write), call):
                self._at_writes[each] += 1
                if found is None and self._at_writes[each] >= each.occurrence:
                    found = each
                    del self._at_writes[each]
        return found

    def _refused(self, request: Request) -> Answer | None:
        """Return the refusal if the right to send this request is taken."""
        if request.resource is None:
            return None
        with self._lock:
            self.rights.setdefault(request.right)
            now = self._clock.monotonic()
            for each, until in self._taken.items():
                if each.right != request.right:
                    continue
                if until is None:
                    until = self._taken[each] = now + each.seconds
                    self._ends_at = max(self._ends_at, until)
                if now < until:
                    return refusal(403, "Forbidden", f"{request.right} is forbidden: the trial has taken this right")
        return None

    def _stale(self, request: Request) -> Request:
        """Return a list request that reads an earlier revision, if the server is behind at this moment.

        Only lists that accept any revision (`resourceVersion=0`) are changed, because other reads are consistent in
        Kubernetes. The server stops being behind a fixed time after the first request of the restarted operator.
        """
        if request.resource is None:
            return request
        with self._lock:
            if self._stale_seconds:
                self._watches.hold(self._stale_seconds)
                self._ends_at = self._clock.monotonic() + self._stale_seconds
                self._stale_seconds = 0.0
            is_behind = self._stale_revision and self._clock.monotonic() < self._ends_at
        if not is_behind or request.verb != "list" or request.query.get("resourceVersion") != "0":
            return request
        query = {name: value for name, value in request.query.items() if name != "limit"}
        query |= {"resourceVersion": str(self._stale_revision), "resourceVersionMatch": "Exact"}
        return request._replace(target=f"{request.path}?{urlencode(query)}", query=query)

    def _crash_before(self, _: Perturbation, __: Request, ___: Forward) -> Answer:
        self._hands.crash()
        raise ConnectionDropped

    def _crash_after(self, _: Perturbation, request: Request, forward: Forward) -> Answer:
        forward(request)
        self._hands.crash()
        raise ConnectionDropped

    def _lost_race(self, _: Perturbation, request: Request, forward: Forward) -> Answer:
        """Let another client be faster.

        Creations and deletions are sent twice, so the operator gets the second answer. Other writes find that another
        client has changed the object.
        """
        if request.verb in ("create", "delete", "deletecollection"):
            forward(request)
        else:
            self._hands.touch(request.path.removesuffix(f"/{request.subresource}"))
        return forward(request)

    def _stale_restart(self, perturbation: Perturbation, request: Request, forward: Forward) -> Answer:
        before = self._hands.head()
        forward(request)
        with self._lock:
            self._stale_revision, self._stale_seconds = before, perturbation.seconds
        self._hands.crash()
        raise ConnectionDropped

    def _stale_watch(self, perturbation: Perturbation, request: Request, forward: Forward) -> Answer:
        self._watches.hold(perturbation.seconds)
        with self._lock:
            self._ends_at = self._clock.monotonic() + perturbation.seconds
        return forward(request)

    def _watch_end(self, _: Perturbation, request: Request, forward: Forward) -> Answer:
        answer = forward(request)
        self._watches.end()
        return answer

    def _watch_expire(self, _: Perturbation, request: Request, forward: Forward) -> Answer:
        answer = forward(request)
        self._watches.expire()
        return answer

    def _answer_lost(self, _: Perturbation, request: Request, forward: Forward) -> Answer:
        forward(request)
        raise ConnectionDropped

    def _answer_late(self, _: Perturbation, request: Request, forward: Forward) -> Answer:
        forward(request)
        return refusal(504, "Timeout", "the request timed out after it was executed")


def _refuse(code: int, reason: str, message: str, **headers: str) -> _Action:
    def act(_: Perturber, __: Perturbation, ___: Request, ____: Forward) -> Answer:
        return refusal(code, reason, message, **headers)

    return act


_Action = Callable[[Perturber, Perturbation, Request, Forward], Answer]
_ACTIONS: dict[str, _Action] = {
    "crash-before": Perturber._crash_before,
    "crash-after": Perturber._crash_after,
    "lost-race": Perturber._lost_race,
    "answer-429": _refuse(429, "TooManyRequests", "too many requests, please try again later", Retry_After="1"),
    "answer-500": _refuse(500, "InternalError", "an internal error occurred; the request was not executed"),
    "answer-503": _refuse(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
    "answer-504": Perturber._answer_late,
    "answer-lost": Perturber._answer_lost,
    "stale-restart": Perturber._stale_restart,
    "stale-watch": Perturber._stale_watch,
    "watch-end": Perturber._watch_end,
    "watch-expire": Perturber._watch_expire,
}


def _names(planned: Call, call: Call) -> bool:
    """Return whether the call of a plan names a call; a key that ends with `*` names all keys with this prefix."""
    if planned[:2] != call[:2]:
        return False
    prefix = planned.key.removesuffix("*")
    return call.key.startswith(prefix) if planned.key.endswith("*") else call.key == planned.key

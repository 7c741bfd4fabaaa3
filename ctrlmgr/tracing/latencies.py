"""Measures the time that one request spends in each stage of the server, for the audit log and the request log.

Guarantees:
- This module measures latencies only for requests for which `begin` was called. For other requests, `add` and
  `measuring` do nothing.
- The latencies of the current request are a context variable, so all tasks of a request add their times to one
  `Latencies` object.
- The stages have the names of kube-apiserver's audit annotations. The times of a stage's parts are added up. The parts
  of a `LONGEST_ONLY` stage run at the same time, so only the longest time counts.

Source: apiserver `pkg/endpoints/request/webhook_duration.go` (`LatencyTrackers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Final

from ctrlmgr.golang.go_duration import write_go_duration

AUTHENTICATION: Final = "authentication"
AUTHORIZATION: Final = "authorization"
IMPERSONATION: Final = "impersonation"
QUEUE_WAIT: Final = "apf-queue-wait"
STORAGE: Final = "etcd"
MUTATING_WEBHOOK: Final = "mutating-webhook"
VALIDATING_WEBHOOK: Final = "validating-webhook"
SERIALIZATION: Final = "serialize-response-object"
RESPONSE_WRITE: Final = "response-write"

_OFF: Final[AbstractContextManager[None]] = nullcontext()
_LONGEST_ONLY: Final = frozenset((AUTHORIZATION, QUEUE_WAIT, VALIDATING_WEBHOOK))
_PREFIX: Final = "apiserver.latency.k8s.io/"
_SLOW: Final = 0.5
"""The seconds above which the audit event of a request has annotations for its latencies."""


class Latencies:
    """The latencies of one request, in seconds by stage."""

    __slots__ = ("_monotonic", "stages")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Create an instance without stages; `monotonic` returns the time in seconds."""
        self._monotonic = monotonic
        self.stages: dict[str, float] = {}

    @contextmanager
    def measuring(self, stage: str) -> Iterator[None]:
        """Return a context manager that measures the time of one part of a stage."""
        began = self._monotonic()
        try:
            yield
        finally:
            self.add(stage, self._monotonic() - began)

    def add(self, stage: str, seconds: float) -> None:
        """Record the time that a part of a stage took."""
        earlier = self.stages.get(stage, 0.0)
        self.stages[stage] = max(earlier, seconds) if stage in _LONGEST_ONLY else earlier + seconds

    def annotations(self, total: float) -> Mapping[str, str]:
        """Return the annotations of a request that took `total` seconds; empty if the request was not slow."""
        if total <= _SLOW or not self.stages:
            return {}
        return {
            **{f"{_PREFIX}{stage}": write_go_duration(seconds) for stage, seconds in self.stages.items()},
            f"{_PREFIX}total": write_go_duration(total),
        }


_current: ContextVar[Latencies | None] = ContextVar("latencies", default=None)


def begin(monotonic: Callable[[], float]) -> Latencies:
    """Measure the current request from now on with the clock `monotonic`, and return its latencies."""
    latencies = Latencies(monotonic)
    _current.set(latencies)
    return latencies


def end() -> None:
    """Stop the measurement of the current request's latencies."""
    _current.set(None)


def add(stage: str, seconds: float) -> None:
    """Record the time that a part of a stage took, if the latencies of the current request are measured."""
    if (latencies := _current.get()) is not None:
        latencies.add(stage, seconds)


def measuring(stage: str) -> AbstractContextManager[None]:
    """Return a context manager that measures a part of a stage, if the current request's latencies are measured."""
    latencies = _current.get()
    return _OFF if latencies is None else latencies.measuring(stage)

"""Limits the rate of one controller's requests, as kube-controller-manager's flag `--kube-api-qps` does."""

from __future__ import annotations

from typing import TypeVar

from ctrlmgr.client import Runner
from ctrlmgr.clock import Clock, pause
from ctrlmgr.engine.operations import Operation
from ctrlmgr.eventlog.event import Cause, Fence
from ctrlmgr.workqueue import TokenBucket

T = TypeVar("T")


class ThrottledRunner:
    """A `Runner` that takes a token from a bucket before each operation.

    The `Runner` waits for the token on the caller's thread.
    """

    def __init__(self, run: Runner, bucket: TokenBucket[None], *, clock: Clock) -> None:
        """Run operations with `run`, at the rate that the token bucket `bucket` allows."""
        self._run = run
        self._bucket = bucket
        self._clock = clock

    def __call__(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        """Run an operation when a token is available; raises the errors that `run` raises."""
        pause(self._clock, self._bucket.when(None))
        return self._run(operation, cause, fence)

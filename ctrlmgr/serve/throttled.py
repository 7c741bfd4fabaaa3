"""A limit on the requests of one controller: kube-controller-manager's `--kube-api-qps` and `--kube-api-burst`."""

from __future__ import annotations

from typing import TypeVar

from ctrlmgr.client import Runner
from ctrlmgr.clock import Clock, pause
from ctrlmgr.engine.operations import Operation
from ctrlmgr.eventlog.event import Cause, Fence
from ctrlmgr.workqueue import TokenBucket

T = TypeVar("T")


class Throttled:
    """A `Runner` whose operations each take a token from a bucket, and wait for it on the caller's thread."""

    def __init__(self, run: Runner, bucket: TokenBucket[None], *, clock: Clock) -> None:
        """Run operations by `run`."""
        self._run = run
        self._bucket = bucket
        self._clock = clock

    def __call__(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        """Run an operation when there is a token for it; raises what `run` raises."""
        pause(self._clock, self._bucket.when(None))
        return self._run(operation, cause, fence)

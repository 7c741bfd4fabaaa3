"""Tests of the rate limit for a controller's requests: a burst, and then a fixed rate, on an injected clock."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.eventlog.event import Cause, Fence
from ctrlmgr.serve.client_rate_limit import ThrottledRunner
from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import TokenBucket
from tests.background import DEADLINE, background

FENCE = Fence("lease", 1)


class RecordingRunner:
    """A runner that records the operations that it runs."""

    def __init__(self) -> None:
        self.ran: list[tuple[Any, Cause | None, Fence | None]] = []

    def __call__(self, operation: Any, cause: Cause | None = None, fence: Fence | None = None) -> Any:
        self.ran.append((operation, cause, fence))
        return f"answer to {operation}"


def test_operations_above_the_burst_wait_for_a_token() -> None:
    clock, run = FakeClock(), RecordingRunner()
    bucket: TokenBucket[None] = TokenBucket(10, 2, clock=clock)
    throttled: Any = ThrottledRunner(run, bucket, clock=clock)
    sending = background(lambda: [throttled(each, None, FENCE) for each in "abc"])
    clock.wait_for_waiters(1)
    assert run.ran == [("a", None, FENCE), ("b", None, FENCE)]
    assert clock.next_deadline_in() == pytest.approx(0.1)
    clock.step(0.1)
    assert sending.result(DEADLINE) == ["answer to a", "answer to b", "answer to c"]

"""Tests of the delays of retried items: the rate limiter behaves as client-go's
default_rate_limiters_test.go requires.
"""

from __future__ import annotations

import pytest

from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import ExponentialBackoff, MaxOf, RateLimiter, TokenBucket, WorkQueue, default_rate_limiter
from tests.workqueue.taking import finish_all, take


def test_backoff_doubles_for_each_failure_of_an_item_and_of_no_other() -> None:
    backoff: ExponentialBackoff[str] = ExponentialBackoff(0.001, 1.0)
    assert [backoff.when("one") for _ in range(5)] == [0.001, 0.002, 0.004, 0.008, 0.016]
    assert backoff.num_requeues("one") == 5
    assert [backoff.when("two") for _ in range(2)] == [0.001, 0.002]
    assert backoff.num_requeues("two") == 2


def test_backoff_starts_again_after_forget() -> None:
    backoff: ExponentialBackoff[str] = ExponentialBackoff(0.001, 1.0)
    backoff.when("one")
    backoff.when("one")
    backoff.forget("one")
    assert backoff.num_requeues("one") == 0
    assert backoff.when("one") == 0.001


@pytest.mark.parametrize(
    ("failures", "delay"),
    [
        pytest.param(0, 0.005, id="the first failure waits 5 ms"),
        pytest.param(1, 0.010, id="the second twice as long"),
        pytest.param(17, 655.36, id="the eighteenth is the last below the limit"),
        pytest.param(18, 1000.0, id="the nineteenth waits 1000 s"),
        pytest.param(2000, 1000.0, id="the two-thousandth still waits 1000 s"),
    ],
)
def test_the_default_backoff_equals_kubernetes(failures: int, delay: float) -> None:
    backoff: ExponentialBackoff[str] = ExponentialBackoff()
    for _ in range(failures):
        backoff.when("one")
    assert backoff.when("one") == delay


def test_a_bucket_allows_its_burst_and_then_its_rate(clock: FakeClock) -> None:
    bucket: TokenBucket[int] = TokenBucket(10, 3, clock=clock)
    assert [bucket.when(n) for n in range(6)] == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_a_bucket_refills_over_time_up_to_its_burst(clock: FakeClock) -> None:
    bucket: TokenBucket[int] = TokenBucket(10, 3, clock=clock)
    for n in range(3):
        bucket.when(n)
    clock.step(0.2)
    assert [bucket.when(n) for n in range(3)] == pytest.approx([0, 0, 0.1])
    clock.step(3600)
    assert [bucket.when(n) for n in range(4)] == pytest.approx([0, 0, 0, 0.1])


def test_a_reserved_token_delays_until_it_is_available(clock: FakeClock) -> None:
    bucket: TokenBucket[int] = TokenBucket(10, 1, clock=clock)
    assert [bucket.when(n) for n in range(3)] == pytest.approx([0, 0.1, 0.2])
    clock.step(0.1)
    assert bucket.when(3) == pytest.approx(0.2)


def test_a_bucket_does_not_distinguish_items(clock: FakeClock) -> None:
    bucket: TokenBucket[str] = TokenBucket(10, 1, clock=clock)
    bucket.when("one")
    bucket.forget("one")
    assert bucket.num_requeues("one") == 0
    assert bucket.when("one") == pytest.approx(0.1)


def test_max_of_returns_the_longest_delay_and_calls_every_limiter(clock: FakeClock) -> None:
    backoff: ExponentialBackoff[str] = ExponentialBackoff(0.05, 10)
    limiter: MaxOf[str] = MaxOf(backoff, TokenBucket(10, 1, clock=clock))
    assert limiter.when("one") == 0.05
    assert limiter.when("two") == pytest.approx(0.1)
    assert limiter.when("one") == pytest.approx(0.2)
    assert limiter.num_requeues("one") == backoff.num_requeues("one") == 2
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0


def test_the_default_limiter_backs_off_by_item_and_limits_all_to_ten_a_second_after_a_hundred(clock: FakeClock) -> None:
    limiter: RateLimiter[int] = default_rate_limiter(clock)
    assert [limiter.when(n) for n in range(100)] == [0.005] * 100
    assert [limiter.when(n) for n in range(100, 103)] == pytest.approx([0.1, 0.2, 0.3])


def test_a_rate_limited_item_is_returned_after_the_limiters_delay(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue("test", clock=clock, limiter=ExponentialBackoff(1.0, 100.0))
    delays = []
    for _ in range(3):
        queue.add_rate_limited("a")
        delays.append(queue.next_ready_in())
        clock.step(100)
        assert finish_all(queue) == ["a"]
    assert delays == [1.0, 2.0, 4.0]


def test_the_attempt_counts_rate_limited_requeues_until_forgotten(clock: FakeClock, queue: WorkQueue[str]) -> None:
    attempts = []
    queue.add("a")
    for _ in range(3):
        attempts.append(take(queue).attempt)
        queue.add_rate_limited("a")
        queue.done("a")
        clock.step(1)
    queue.forget("a")
    attempts.append(take(queue).attempt)
    assert attempts == [1, 2, 3, 1]


def test_num_requeues_is_the_limiters_count(queue: WorkQueue[str]) -> None:
    queue.add_rate_limited("a")
    queue.add_rate_limited("a")
    assert queue.num_requeues("a") == 2
    queue.forget("a")
    assert queue.num_requeues("a") == 0


def test_an_empty_custom_limiter_is_not_mistaken_for_none(clock: FakeClock) -> None:
    class Never:
        """A rate limiter that counts as false in a condition, like an empty collection."""

        def __len__(self) -> int:
            return 0

        def when(self, item: str) -> float:
            return 9.0

        def forget(self, item: str) -> None: ...

        def num_requeues(self, item: str) -> int:
            return 0

    queue: WorkQueue[str] = WorkQueue("test", clock=clock, limiter=Never())
    queue.add_rate_limited("a")
    assert queue.next_ready_in() == 9.0

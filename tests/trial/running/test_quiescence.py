"""A log is quiet when no event that matters has been written for some time."""

from __future__ import annotations

from concurrent.futures import Future

from ctrlmgr.clock import SystemClock, pause
from ctrlmgr.trial.running.quiescence import LogFollower
from tests.background import DEADLINE, background
from tests.trial.logs import Log


def test_events_that_matter_end_the_quiet() -> None:
    log = Log()
    follower = LogFollower(log, clock=log.time)
    log.time.step(5)
    assert follower.quiet_seconds() == 5
    revision = log.put("ConfigMap", "web").revision
    log.time.step(2)
    assert follower.quiet_seconds() == 2
    assert follower.changed_revision == revision


def test_heartbeats_do_not_end_the_quiet() -> None:
    log = Log()
    follower = LogFollower(log, clock=log.time)
    log.time.step(5)
    log.put("Event", "started")
    log.put("Lease", "operator", api_version="coordination.k8s.io/v1")
    log.put("Node", "node-1", namespace="")
    assert follower.quiet_seconds() == 5


def test_waiting_ends_when_the_log_is_quiet_and_the_condition_holds() -> None:
    log = Log()
    follower = LogFollower(log, clock=log.time)
    waiting = background(lambda: follower.until_quiet(3, 60, lambda: log.head().revision > 0))
    for _ in range(40):
        log.time.wait_for_waiters(1)
        log.time.step(0.1)
    assert not waiting.done()
    log.put("Event", "started")
    assert _stepped(log, waiting)


def test_waiting_gives_up_at_the_limit() -> None:
    log = Log()
    follower = LogFollower(log, clock=log.time)
    log.time.step(1)
    waiting = background(lambda: follower.until_quiet(3600, 1))
    assert not _stepped(log, waiting)


def _stepped(log: Log, waiting: Future[bool]) -> bool:
    """Let time pass until a function has returned, and return its result."""
    while not waiting.done():
        log.time.step(0.1)
        pause(SystemClock(), 0.001)
    return waiting.result(DEADLINE)

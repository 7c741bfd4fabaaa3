"""Tests of the pace at which watches end while the server stops (`shutdown_watch_termination_grace_period`)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from ctrlmgr import threads
from ctrlmgr.clock import SystemClock
from ctrlmgr.server import HttpServer
from ctrlmgr.server.watch import termination_pace
from ctrlmgr.server.watch.termination_pace import TerminationPace
from ctrlmgr.testing.builders import a_namespace
from ctrlmgr.testing.fake_clock import FakeClock
from tests.server.site import CONFIG_MAPS, TIMEOUT, Site, add, make

GRACE, LONG_GRACE = 1.0, 5.0


@contextmanager
def paced(watches: int, grace: float) -> Iterator[TerminationPace]:
    """Yield the pace of a stopping server with some watches."""
    pace = TerminationPace(FakeClock())
    with ExitStack() as open_watches:
        for _ in range(watches):
            open_watches.enter_context(pace.counting())
        pace.begin(grace)
        yield pace


def test_watches_end_at_once_while_the_server_runs() -> None:
    assert TerminationPace(FakeClock()).delay() == 0.0


def test_many_watches_end_evenly_within_the_grace_period() -> None:
    with paced(4_000, 10.0) as pace:
        delays = [pace.delay() for _ in range(4_000)]
    assert delays == pytest.approx([each / 400 for each in range(4_000)])


def test_few_watches_end_with_the_least_rate() -> None:
    with paced(3, 60.0) as pace:
        assert [pace.delay() for _ in range(3)] == pytest.approx([0.0, 0.005, 0.01])


def test_a_watch_whose_turn_is_after_the_grace_period_ends_at_once() -> None:
    with paced(200, 1.0) as pace:
        delays = [pace.delay() for _ in range(300)]
    assert max(delays) <= 1.0
    assert delays[-1] == 0.0


def test_the_wait_for_watches_ends_with_the_grace_period() -> None:
    async def waits() -> int:
        pace = TerminationPace(SystemClock())
        with pace.counting():
            pace.begin(0.01)
            await pace.all_ended()
        pace.begin(TIMEOUT)
        await pace.all_ended()
        return 1

    assert asyncio.run(asyncio.wait_for(waits(), TIMEOUT / 2)) == 1


@pytest.mark.parametrize("listens", [True, False])
def test_a_stopping_server_ends_watches_one_after_another(monkeypatch: pytest.MonkeyPatch, *, listens: bool) -> None:
    monkeypatch.setattr(termination_pace, "LEAST_RATE", 0.1)
    stop, made, clock = threading.Event(), make(watch_grace=GRACE), SystemClock()
    add(made.log, a_namespace())
    server = HttpServer(made.app, ("127.0.0.1", 0), clock=clock, listens_until_drained=listens)
    thread = threads.start("server under test", lambda: server.run(stop))
    site = Site(server.url, made.log)
    with ExitStack() as watching:
        watches = [watching.enter_context(site.watch()) for _ in range(4)]
        stop.set()
        began = clock.monotonic()
        for watch in watches:
            assert watch.rest() == []
        assert clock.monotonic() - began >= 0.7 * GRACE
    thread.join(TIMEOUT)
    assert not thread.is_alive()


def test_a_new_watch_is_refused_while_watches_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, begin = threading.Event(), TerminationPace.begin

    def begin_and_report(pace: TerminationPace, grace: float) -> None:
        begin(pace, grace)
        begun.set()

    monkeypatch.setattr(termination_pace, "LEAST_RATE", 0.1)
    monkeypatch.setattr(TerminationPace, "begin", begin_and_report)
    stop, made = threading.Event(), make(watch_grace=LONG_GRACE)
    add(made.log, a_namespace())
    server = HttpServer(made.app, ("127.0.0.1", 0), clock=SystemClock(), listens_until_drained=True)
    thread = threads.start("server under test", lambda: server.run(stop))
    site = Site(server.url, made.log)
    with site.watch() as first, site.watch() as second:
        stop.set()
        assert begun.wait(TIMEOUT)
        answer = site.ask(f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1")
        assert site.ask(CONFIG_MAPS).status == 200
        assert first.rest() == second.rest() == []
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert answer.body == (
        '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        '"message":"apiserver is shutting down","reason":"ServiceUnavailable","code":503}\n\n'
    )
    assert (answer.headers["content-type"], answer.headers["x-content-type-options"]) == ("application/json", "nosniff")
    thread.join(TIMEOUT)
    assert not thread.is_alive()

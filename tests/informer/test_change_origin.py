"""Tests of the origin of a change: whether the change comes from a list, and whether a request made it."""

from __future__ import annotations

from ctrlmgr.api.resource import PODS
from ctrlmgr.eventlog.event import Cause, EventType, Proposal
from ctrlmgr.informer import EventWindow, Informers
from ctrlmgr.testing import FakeClock
from tests.informer.shared_log import AUTHOR, SharedLog, thing


def test_a_change_has_its_source_and_whether_a_request_caused_it() -> None:
    clock = FakeClock()
    log = SharedLog(clock=clock)
    informers = Informers(log, EventWindow(log, clock=clock), clock=clock)
    told: list[tuple[str, bool, bool]] = []
    informers.informer(PODS).add_handler(
        lambda change: told.append((change.object.name, change.is_listed, change.is_request))
    )
    log.put(thing("listed"))
    informers.sync()
    log.put(thing("requested"))
    cause = Cause(1, "controller", "default/made", 1, 0, ())
    log.append([Proposal(EventType.ADDED, thing("made"), 0)], author=AUTHOR, cause=cause)
    informers.step()
    with log.elsewhere():
        log.put(thing("found"))
    informers.sync()
    assert told == [
        ("listed", True, False),
        ("requested", False, True),
        ("made", False, False),
        ("found", False, False),
    ]

"""Tests of controllers that stand by while another process leads, and that reconcile all existing objects when they
begin to lead.
"""

from __future__ import annotations

import threading

from ctrlmgr.eventlog import Author, EventType, Proposal
from tests.background import DEADLINE, background
from tests.manager.stage import A, B, ScriptedReconciler, Stage, pod

ALICE = Author("alice")


def test_a_standby_controller_holds_no_keys() -> None:
    stage = Stage(ScriptedReconciler())
    stage.controller.stand_by()
    stage.log.append([Proposal(EventType.ADDED, pod("a"), 0)], author=ALICE)
    stage.informers.sync()
    stage.log.append([Proposal(EventType.ADDED, pod("b"), 0)], author=ALICE)
    assert stage.process_all() == 0
    assert len(stage.controller.queue) == 0


def test_a_resumed_controller_reconciles_all_objects_with_their_revisions_as_triggers() -> None:
    reconciler = ScriptedReconciler()
    stage = Stage(reconciler)
    stage.controller.stand_by()
    stage.log.append([Proposal(EventType.ADDED, pod("b"), 0)], author=ALICE)
    stage.log.append([Proposal(EventType.ADDED, pod("a"), 0)], author=ALICE)
    stage.informers.sync()
    stage.controller.resume()
    for key, revision in ((A, 2), (B, 1)):
        with stage.controller.queue.processing(timeout=0) as delivery:
            assert delivery is not None
            assert (delivery.item, delivery.triggers) == (key, (revision,))
    stage.log.append([Proposal(EventType.MODIFIED, pod("a", note="x"), 2)], author=ALICE)
    assert stage.process_all() == 1
    assert reconciler.keys == [A]


def test_a_controller_runs_again_after_its_term_has_ended() -> None:
    reconciler = ScriptedReconciler()
    stage = Stage(reconciler)
    stage.log.append([Proposal(EventType.ADDED, pod("a"), 0)], author=ALICE)
    stage.informers.sync()
    for term in (1, 2, 3):
        stop = threading.Event()
        if term > 1:
            stage.controller.resume()
        called = len(reconciler.keys)
        running = background(lambda stop=stop: stage.controller.run(stop))  # type: ignore[misc]  # of this term
        stage.clock.wait_for_waiters(1)  # its worker waits for keys, because it has processed all of them
        assert reconciler.keys[called:] == [A]
        stop.set()
        running.result(DEADLINE)

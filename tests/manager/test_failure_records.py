"""Tests of recorded failures of reconciles: each key has one record, from the first failure to the next success."""

from __future__ import annotations

from random import Random

import pytest
from structlog.testing import capture_logs

from ctrlmgr.api.resource import PODS
from ctrlmgr.errors import Conflict, LogUnavailable, OutcomeUnknown, TerminalError
from ctrlmgr.eventlog import Failure
from ctrlmgr.informer import EventWindow, Informers
from ctrlmgr.manager import Controller, Watch, own_key
from tests.manager.stage import A, ScriptedReconciler, Stage, fails, pod


def the_failure(stage: Stage) -> Failure:
    (found,) = stage.log.failures()
    return found


def test_a_failing_key_has_one_record_until_it_succeeds() -> None:
    stage = Stage(ScriptedReconciler(*[fails(KeyError("price"))] * 2, fails(ValueError("other"))), name="shops")
    stage.client.create(pod("a"))
    stage.informers.sync()
    stage.process_all()
    first = the_failure(stage)
    assert (first.controller, first.key, first.attempts) == ("shops", str(A), 1)
    assert first.error == "KeyError: 'price'"
    assert "in act\n    raise error" in first.traceback
    assert first.next_retry_at is not None
    assert first.next_retry_at > first.last_at == first.since
    while the_failure(stage).attempts < 3:
        stage.clock.step(1)
        stage.process_all()
    third = the_failure(stage)
    assert (third.since, third.error, third.ended_at) == (first.since, "ValueError: other", None)
    assert third.last_at > first.last_at
    stage.clock.step(1)
    stage.process_all()
    ended = the_failure(stage)
    assert ended.ended_at == stage.clock.now()
    assert (ended.attempts, ended.error, ended.next_retry_at) == (3, "ValueError: other", None)


def test_a_key_that_fails_again_has_another_record() -> None:
    reconciler = ScriptedReconciler(fails(KeyError("one")))
    stage = Stage(reconciler)
    stage.client.create(pod("a"))
    stage.informers.sync()
    stage.process_all()
    stage.clock.step(1)
    stage.process_all()
    reconciler.acts.append(fails(KeyError("two")))
    stage.controller.queue.add(A)
    stage.process_all()
    assert [(each.error, each.ended_at is None) for each in stage.log.failures()] == [
        ("KeyError: 'two'", True),
        ("KeyError: 'one'", False),
    ]


@pytest.mark.parametrize(
    "error",
    [Conflict("another was first"), LogUnavailable("away"), OutcomeUnknown("?")],
    ids=lambda each: each.__class__.__name__,
)
def test_expected_errors_are_no_failures(error: Exception) -> None:
    stage = Stage(ScriptedReconciler(fails(error)))
    stage.client.create(pod("a"))
    stage.informers.sync()
    stage.process_all()
    assert stage.log.failures() == []


@pytest.mark.parametrize(("error", "retries"), [(TerminalError("never"), None), (KeyError("x"), 0)])
def test_a_key_without_retries_has_no_next_retry(error: Exception, retries: int | None) -> None:
    stage = Stage(ScriptedReconciler(fails(error)), max_retries=retries)
    stage.client.create(pod("a"))
    stage.informers.sync()
    stage.process_all()
    assert the_failure(stage).next_retry_at is None
    assert the_failure(stage).ended_at is None


def test_texts_are_truncated_and_storable() -> None:
    stage = Stage(ScriptedReconciler(fails(ValueError("\ud800\0" + "x" * 100_000))))
    stage.client.create(pod("a"))
    stage.informers.sync()
    with capture_logs():
        stage.process_all()
    found = the_failure(stage)
    assert (len(found.error), len(found.traceback)) == (2_000, 8_000)
    assert "\0" not in found.error
    found.error.encode()


def test_the_next_process_takes_over_records_and_retries() -> None:
    stage = Stage(ScriptedReconciler(fails(KeyError("x"))), name="shops")
    created = stage.client.create(pod("a"))
    stage.informers.sync()
    stage.process_all()
    stage.client.delete(created)  # no other event would add the key again
    stage.clock.step(5)
    informers = Informers(stage.log, EventWindow(stage.log, clock=stage.clock), clock=stage.clock)
    reconciler = ScriptedReconciler()
    following = Controller(
        "shops",
        reconciler,
        watches=[Watch(informers.informer(PODS), own_key)],
        client=stage.client,
        log=stage.log,
        clock=stage.clock,
        random=Random(3),
    )
    informers.sync()
    following.start()
    assert following.process_next(timeout=0)
    assert reconciler.keys == [A]
    assert the_failure(stage).ended_at == stage.clock.now()

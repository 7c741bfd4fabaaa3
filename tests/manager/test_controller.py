"""Tests of `Controller`: from a change to a reconcile, and from the reconcile's result to the next reconcile of the
key.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import pytest
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs

from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.errors import (
    AlreadyExists,
    Conflict,
    Fenced,
    LogClosed,
    LogCorrupt,
    LogRolledBack,
    LogUnavailable,
    NamespaceTerminating,
    NotFound,
    OutcomeUnknown,
    SchemaOutdated,
    TerminalError,
)
from ctrlmgr.eventlog import Event, Outcome, Reconcile
from ctrlmgr.manager import Result
from ctrlmgr.metrics import REGISTRY
from tests.background import DEADLINE, background
from tests.manager.stage import A, B, ScriptedReconciler, Stage, config_map, creates, fails, pod, then


def metric(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"controller_runtime_{name}", labels)


def last_event(stage: Stage) -> Event:
    return stage.log.events_after(stage.log.head().revision - 1)[0]


def last_reconcile(stage: Stage) -> Reconcile:
    """Return the stored reconcile that wrote the newest event of the log."""
    found = stage.log.reconcile(last_event(stage).reconcile)
    assert found is not None
    return found


# From changes to keys.


def test_existing_objects_are_reconciled_first() -> None:
    reconciler = ScriptedReconciler()
    stage = Stage(reconciler)
    stage.client.create(pod("a"))
    stage.client.create(pod("b"))
    stage.informers.sync()
    assert stage.process_all() == 2
    assert reconciler.keys == [A, B]


def test_a_change_enqueues_the_keys_of_its_watch() -> None:
    reconciler = ScriptedReconciler()
    stage = Stage(reconciler)
    stage.informers.sync()
    stage.client.create(pod("b"))
    stage.process_all()
    assert reconciler.keys == [B]


def test_the_cause_names_every_coalesced_revision() -> None:
    stage = Stage(ScriptedReconciler(creates("made")), name="accountable")
    stage.informers.sync()
    first = stage.client.create(pod("a"))
    second = stage.client.update(pod("a", note="changed").at(first.revision))
    stage.clock.step(3)
    stage.process_all()
    cause = last_reconcile(stage).cause
    assert cause.triggers == (first.revision, second.revision)
    assert (cause.controller, cause.key, cause.attempt) == ("accountable", "default/a", 1)
    assert cause.started_at == stage.clock.now()
    assert 0 < cause.id < 2**63


def test_every_reconcile_has_a_unique_id() -> None:
    stage = Stage(ScriptedReconciler(creates("one"), creates("two")))
    stage.controller.queue.add(A)
    stage.controller.queue.add(B)
    stage.process_all()
    ids = {event.reconcile for event in stage.log.events_after(0)}
    assert len(ids) == 2


class ReconcilerWithInitialKeys(ScriptedReconciler):
    def on_start(self) -> Iterable[Key]:
        return [B, A]


def test_initial_keys_are_enqueued_at_start() -> None:
    reconciler = ReconcilerWithInitialKeys()
    stage = Stage(reconciler)
    stage.controller.start()
    stage.process_all()
    assert reconciler.keys == [B, A]


def test_process_next_returns_false_on_an_empty_queue() -> None:
    stage = Stage(ScriptedReconciler())
    assert stage.controller.process_next(timeout=0) is False
    stage.controller.queue.shut_down()
    assert stage.controller.process_next() is False


# From results to the next handling of the key.


def test_a_success_is_forgotten_and_not_repeated() -> None:
    stage = Stage(ScriptedReconciler(fails(Conflict()), lambda key, client: None), name="succeeds")
    stage.controller.queue.add(A)
    stage.process_all()
    assert stage.controller.queue.num_requeues(A) == 1
    stage.clock.step(1)
    stage.process_all()
    assert stage.controller.queue.num_requeues(A) == 0
    assert stage.controller.queue.next_ready_in() is None
    assert metric("reconcile_total", controller="succeeds", result="success") == 1


def test_a_requeue_happens_after_the_requested_delay() -> None:
    reconciler = ScriptedReconciler(then(creates("made"), lambda key, client: Result(requeue_after=60)))
    stage = Stage(reconciler, name="requeues")
    stage.controller.queue.add(A)
    stage.process_all()
    assert stage.controller.queue.next_ready_in() == 60
    assert last_reconcile(stage).outcome == Outcome(0, "requeued")
    assert metric("reconcile_total", controller="requeues", result="requeue_after") == 1
    stage.clock.step(60)
    stage.process_all()
    assert reconciler.keys == [A, A]


def test_unhandled_triggers_of_a_requeued_reconcile_pass_to_the_next() -> None:
    later = Result(requeue_after=60)
    stage = Stage(
        ScriptedReconciler(lambda key, client: later, then(creates("made"), lambda key, client: later), creates("b"))
    )
    stage.controller.queue.add(A, [3, 5])
    stage.process_all()
    stage.controller.queue.add_after(A, 10, [7])
    stage.clock.step(60)
    stage.process_all()
    assert last_reconcile(stage).cause.triggers == (3, 5, 7)
    stage.clock.step(60)
    stage.process_all()
    assert last_reconcile(stage).cause.triggers == ()


@pytest.mark.parametrize("ends", [lambda key, client: None, fails(OutcomeUnknown())])
def test_a_key_waits_until_its_caches_have_its_last_write(
    ends: Callable[[Key, Client], Result | None],
) -> None:
    reconciler = ScriptedReconciler(then(creates("made"), ends), creates("more"))
    stage = Stage(reconciler, sees_own_writes=True)
    stage.controller.queue.add(A)
    stage.controller.process_next(timeout=0)
    stage.controller.queue.add(A, [7])
    stage.clock.step(1)
    for _ in range(3):  # the caches do not contain the write yet
        assert stage.controller.process_next(timeout=0)
        stage.clock.step(1)
    assert reconciler.keys == [A]
    stage.process_all()
    assert reconciler.keys == [A, A]
    assert last_reconcile(stage).cause.triggers == (7,)


def test_triggers_received_with_a_stale_cache_are_handled_by_the_next_delivery() -> None:
    stage = Stage(ScriptedReconciler(creates("made"), creates("more")), sees_own_writes=True)
    stage.controller.queue.add(A)
    stage.controller.process_next(timeout=0)
    stage.controller.queue.add(A, [7])
    assert stage.controller.process_next(timeout=0)  # the caches do not contain the write yet, so the key has to wait
    stage.controller.queue.add(A, [8])
    stage.process_all()  # before this time
    assert last_reconcile(stage).cause.triggers == (7, 8)


def test_a_key_does_not_wait_for_writes_of_other_keys() -> None:
    reconciler = ScriptedReconciler(creates("made"))
    stage = Stage(reconciler, sees_own_writes=True)
    stage.controller.queue.add(A)
    stage.process_all()
    stage.client.create(config_map("another"))
    stage.controller.queue.add(B)
    stage.controller.process_next(timeout=0)
    assert reconciler.keys == [A, B]


def test_a_failed_key_is_retried_with_backoff_and_the_same_triggers() -> None:
    stage = Stage(ScriptedReconciler(fails(Conflict()), fails(ValueError("no")), creates("made")))
    stage.controller.queue.add(A, [3, 5])
    delays = []
    for _ in range(2):
        assert stage.process_all() == 1
        delays.append(stage.controller.queue.next_ready_in())
        stage.clock.step(delays[-1] or 0)
    stage.process_all()
    assert delays == pytest.approx([0.005, 0.010])
    cause = last_reconcile(stage).cause
    assert (cause.triggers, cause.attempt) == ((3, 5), 3)


def test_new_triggers_join_those_of_the_retry() -> None:
    stage = Stage(ScriptedReconciler(fails(Conflict()), creates("made")))
    stage.controller.queue.add(A, [3])
    stage.process_all()
    stage.clock.step(1)
    stage.controller.queue.add(A, [4])
    stage.process_all()
    assert last_reconcile(stage).cause.triggers == (3, 4)


def test_one_failing_key_does_not_delay_another() -> None:
    reconciler = ScriptedReconciler(fails(ZeroDivisionError()))
    stage = Stage(reconciler)
    stage.controller.queue.add(A)
    stage.controller.queue.add(B)
    assert stage.process_all() == 2
    assert reconciler.keys == [A, B]


def test_a_key_is_dropped_after_its_retries_and_returns_with_its_next_change() -> None:
    reconciler = ScriptedReconciler(*[fails(Conflict())] * 4)
    stage = Stage(reconciler, max_retries=3)
    stage.controller.queue.add(A)
    for _ in range(10):
        stage.process_all()
        stage.clock.step(10)
    assert reconciler.keys == [A] * 4
    assert stage.controller.queue.num_requeues(A) == 0
    stage.controller.queue.add(A)
    assert stage.process_all() == 1


def test_without_a_limit_retries_continue() -> None:
    reconciler = ScriptedReconciler(*[fails(Conflict())] * 30)
    stage = Stage(reconciler)
    stage.controller.queue.add(A)
    for _ in range(31):
        stage.process_all()
        stage.clock.step(1000)
    assert len(reconciler.keys) == 31


def test_a_terminal_error_is_recorded_and_not_retried() -> None:
    stage = Stage(ScriptedReconciler(then(creates("made"), fails(TerminalError("no such class")))), name="terminal")
    stage.controller.queue.add(A)
    with capture_logs() as logs:
        stage.process_all()
    assert stage.controller.queue.next_ready_in() is None
    assert last_reconcile(stage).outcome == Outcome(0, "terminal", "no such class")
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("reconcile failed, no retry", "error")]
    assert metric("terminal_reconcile_errors_total", controller="terminal") == 1
    assert metric("reconcile_errors_total", controller="terminal") == 1


@pytest.mark.parametrize("error", [Fenced, LogClosed, LogCorrupt, LogRolledBack, SchemaOutdated])
def test_fatal_errors_stop_the_process(error: type[Exception]) -> None:
    stage = Stage(ScriptedReconciler(fails(error())))
    stage.controller.queue.add(A)
    with pytest.raises(error):
        stage.controller.process_next(timeout=0)
    assert stage.controller.queue.next_ready_in() is None
    assert stage.controller.queue.shut_down(drain=True) is True


def test_an_unexpected_error_is_contained_counted_and_logged_once_with_its_traceback() -> None:
    stage = Stage(ScriptedReconciler(fails(KeyError("spec"))), name="buggy")
    stage.controller.queue.add(A)
    with capture_logs() as logs:
        stage.process_all()
    [entry] = [entry for entry in logs if entry["log_level"] != "debug"]
    assert (entry["event"], entry["log_level"]) == ("reconcile failed", "error")
    assert isinstance(entry["exc_info"], KeyError)
    assert metric("reconcile_panics_total", controller="buggy") == 1
    assert metric("reconcile_errors_total", controller="buggy") == 1
    assert metric("reconcile_total", controller="buggy", result="error") == 1


def test_a_repeated_unexpected_error_has_one_traceback_and_a_counter() -> None:
    def divide(key: Key, client: Client) -> None:
        raise ZeroDivisionError(f"at {stage.clock.now()}")  # the message differs at each failure

    stage = Stage(ScriptedReconciler(divide, divide, divide, fails(KeyError("spec")), then(), divide))
    stage.controller.queue.add(A)
    with capture_logs() as logs:
        for _ in range(6):
            stage.process_all()
            stage.clock.step(1000)
        stage.controller.queue.add(A)
        stage.process_all()
    told = [
        (entry["event"], entry.get("same_error"), "exc_info" in entry) for entry in logs if "failed" in entry["event"]
    ]
    assert told == [
        ("reconcile failed", None, True),
        ("reconcile failed again", 1, False),
        ("reconcile failed again", 2, False),
        ("reconcile failed", None, True),  # a success came between the two errors
        ("reconcile failed", None, True),  # a success was in between
    ]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Conflict(), id="a conflict"),
        pytest.param(AlreadyExists(), id="somebody else made it"),
        pytest.param(NotFound(), id="somebody else deleted it"),
        pytest.param(NamespaceTerminating(), id="its namespace is going"),
        pytest.param(LogUnavailable(), id="an unreachable log"),
        pytest.param(OutcomeUnknown(), id="a log that did not answer"),
    ],
)
def test_an_expected_error_is_logged_without_traceback_and_is_no_panic(error: Exception) -> None:
    name = f"expected-{type(error).__name__}"
    stage = Stage(ScriptedReconciler(fails(error)), name=name)
    stage.controller.queue.add(A)
    with capture_logs() as logs:
        stage.process_all()
    [entry] = [entry for entry in logs if entry["event"] == "retrying reconcile"]
    assert entry["log_level"] == ("debug" if getattr(error, "lost_race", False) else "info")
    assert entry["attempt"] == 1
    assert "exc_info" not in entry
    assert metric("reconcile_panics_total", controller=name) == 0
    assert metric("reconcile_errors_total", controller=name) == 1


# Stored outcomes and failures.


def test_the_log_contains_the_outcome_of_a_reconcile_with_writes() -> None:
    def act(key: Key, client: Client) -> None:
        creates("made")(key, client)
        stage.clock.step(0.25)

    stage = Stage(ScriptedReconciler(act))
    stage.controller.queue.add(A)
    stage.process_all()
    assert last_reconcile(stage).outcome == Outcome(250_000, "ok")


def test_the_log_contains_the_failure_of_a_reconcile_with_writes() -> None:
    stage = Stage(ScriptedReconciler(then(creates("made"), fails(ValueError("half-way")))))
    stage.controller.queue.add(A)
    stage.process_all()
    assert last_reconcile(stage).outcome == Outcome(0, "error", "ValueError: half-way")


def test_the_log_contains_no_reconcile_without_writes() -> None:
    stage = Stage(ScriptedReconciler())
    stage.controller.queue.add(A)
    stage.process_all()
    assert stage.log.head().revision == 0


def test_log_lines_of_a_reconcile_contain_its_controller_key_and_attempt() -> None:
    seen: list[dict[str, object]] = []

    def act(key: Key, client: Client) -> None:
        seen.append(get_contextvars())

    stage = Stage(ScriptedReconciler(act), name="bound")
    stage.controller.queue.add(A)
    stage.process_all()
    assert seen == [{"controller": "bound", "key": "default/a", "attempt": 1}]
    assert get_contextvars() == {}


def test_reconcile_time_and_workers_are_measured() -> None:
    active: list[float | None] = []

    def act(key: Key, client: Client) -> None:
        active.append(metric("active_workers", controller="measured"))
        stage.clock.step(0.3)

    stage = Stage(ScriptedReconciler(act), name="measured", workers=3)
    stage.controller.queue.add(A)
    stage.process_all()
    assert active == [1]
    assert metric("active_workers", controller="measured") == 0
    assert metric("max_concurrent_reconciles", controller="measured") == 3
    assert metric("reconcile_time_seconds_sum", controller="measured") == pytest.approx(0.3)
    assert metric("reconcile_time_seconds_bucket", controller="measured", le="0.25") == 0
    assert metric("reconcile_time_seconds_bucket", controller="measured", le="0.35") == 1


# Running with threads.


class BlockingReconciler:
    """A reconciler whose calls block until a test releases them."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.inside: list[Key] = []
        self.finished: list[Key] = []
        self.open = False

    def reconcile(self, key: Key, client: Client) -> None:
        with self.changed:
            self.inside.append(key)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.open, DEADLINE)
            self.finished.append(key)
            self.changed.notify_all()

    def wait_for_inside(self, n: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.inside) >= n, DEADLINE)

    def let_go(self) -> None:
        with self.changed:
            self.open = True
            self.changed.notify_all()


def test_workers_reconcile_different_keys_concurrently() -> None:
    gate = BlockingReconciler()
    stage = Stage(gate, workers=2)
    stop = threading.Event()
    running = background(lambda: stage.controller.run(stop))
    stage.controller.queue.add(A)
    stage.controller.queue.add(B)
    gate.wait_for_inside(2)
    gate.let_go()
    stop.set()
    running.result(DEADLINE)
    assert sorted(gate.finished) == [A, B]


def test_stopping_lets_a_worker_finish_its_key_and_start_no_other() -> None:
    gate = BlockingReconciler()
    stage = Stage(gate)
    stop = threading.Event()
    running = background(lambda: stage.controller.run(stop))
    stage.controller.queue.add(A)
    stage.controller.queue.add(B)
    gate.wait_for_inside(1)
    stop.set()
    stage.clock.wait_for_waiters(1)  # the drain waits for the running reconcile
    assert not running.done()
    gate.let_go()
    running.result(DEADLINE)
    assert gate.finished == [A]


def test_stopping_wakes_idle_workers_and_run_outlives_them() -> None:
    stage = Stage(ScriptedReconciler(), name="idle", workers=3)
    stop = threading.Event()
    running = background(lambda: stage.controller.run(stop))
    stage.clock.wait_for_waiters(3)
    stop.set()
    running.result(DEADLINE)
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("idle-")] == []


def test_run_starts_with_the_initial_keys_of_the_reconciler() -> None:
    class BlockingReconcilerWithInitialKeys(BlockingReconciler):
        def on_start(self) -> Iterable[Key]:
            return [B]

    gate = BlockingReconcilerWithInitialKeys()
    stage = Stage(gate)
    stop = threading.Event()
    running = background(lambda: stage.controller.run(stop))
    gate.wait_for_inside(1)
    gate.let_go()
    stop.set()
    running.result(DEADLINE)
    assert gate.finished == [B]


def test_a_fatal_error_of_a_worker_ends_run() -> None:
    stage = Stage(ScriptedReconciler(fails(Fenced())), workers=2)
    stage.controller.queue.add(A)
    running = background(lambda: stage.controller.run(threading.Event()))
    with pytest.raises(Fenced):
        running.result(DEADLINE)

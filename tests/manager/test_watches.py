"""Tests of the keys that a watch enqueues."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.errors import Conflict
from ctrlmgr.manager import Result
from tests.manager.stage import A, B, ScriptedReconciler, Stage, fails, pod

Act = Callable[[Key, Client], Result | None]


def test_a_delayed_watch_coalesces_changes() -> None:
    reconciler = ScriptedReconciler()
    stage = Stage(reconciler, delay=0.5)
    stage.informers.sync()
    created = stage.client.create(pod("a"))
    assert stage.process_all() == 0
    stage.clock.step(0.4)
    stage.client.delete(created)
    assert stage.process_all() == 0
    stage.clock.step(0.1)
    assert stage.process_all() == 1


def test_an_urgent_change_overtakes_others() -> None:
    reconciler = ScriptedReconciler()
    stage = Stage(reconciler, is_urgent=lambda change: change.object.name == "c")
    stage.informers.sync()
    keys = [stage.client.create(pod(name)).key for name in "abc"]
    stage.process_all()
    assert reconciler.keys == [keys[2], keys[0], keys[1]]


def test_a_change_overtakes_keys_of_a_resync() -> None:
    reconciler = ScriptedReconciler()
    stage = Stage(reconciler, after_sync=True)
    for name in "ab":
        stage.client.create(pod(name))
    stage.informers.sync()
    stage.process_all()
    del reconciler.keys[:]
    stage.informers.sync()
    changed = stage.client.create(pod("c"))
    stage.process_all()
    assert reconciler.keys == [changed.key, A, B]


def test_initial_keys_are_reconciled_after_changes() -> None:
    class ReconcilerWithInitialKeys(ScriptedReconciler):
        def on_start(self) -> list[Key]:
            return [B]

    reconciler = ReconcilerWithInitialKeys()
    stage = Stage(reconciler)
    stage.informers.sync()
    stage.controller.start()
    stage.client.create(pod("a"))
    stage.process_all()
    assert reconciler.keys == [A, B]


@pytest.mark.parametrize("outcome", [fails(Conflict("another writer")), lambda key, client: Result(0.005)])
def test_a_repeated_key_keeps_its_priority(outcome: Act) -> None:
    reconciler = ScriptedReconciler(outcome)
    stage = Stage(reconciler, is_urgent=lambda change: change.object.name == "b")
    stage.informers.sync()
    stage.client.create(pod("b"))
    stage.process_all()
    stage.client.create(pod("a"))
    while stage.informers.step():
        pass
    stage.clock.step(0.005)
    stage.process_all()
    assert reconciler.keys == [B, B, A]


@pytest.mark.parametrize(("after_sync", "looked_at"), [(False, []), (True, [A, B])])
def test_a_resync_reconciles_everything_if_the_watch_requests_that(after_sync: bool, looked_at: list[Key]) -> None:
    reconciler = ScriptedReconciler()
    stage = Stage(reconciler, after_sync=after_sync)
    stage.client.create(pod("a"))
    stage.client.create(pod("b"))
    stage.informers.sync()
    stage.process_all()
    del reconciler.keys[:]
    stage.informers.sync()
    stage.process_all()
    assert reconciler.keys == looked_at

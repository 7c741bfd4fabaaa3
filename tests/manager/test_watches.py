"""What a watch enqueues, and when."""

from __future__ import annotations

import pytest

from ctrlmgr.api.resource import Key
from ctrlmgr.workqueue import Pace
from tests.manager.stage import A, B, Scripted, Stage, pod


def test_a_delayed_watch_coalesces_what_comes_meanwhile() -> None:
    reconciler = Scripted()
    stage = Stage(reconciler, delay=0.5)
    stage.informers.sync()
    created = stage.client.create(pod("a"))
    assert stage.process_all() == 0
    stage.clock.step(0.4)
    stage.client.delete(created)
    assert stage.process_all() == 0
    stage.clock.step(0.1)
    assert stage.process_all() == 1


def test_what_is_new_waits_for_a_pause_where_the_watch_says_so_and_what_changes_does_not() -> None:
    reconciler = Scripted()
    pace = Pace(fewest=2)
    stage = Stage(reconciler, new_can_wait=True, pace=pace)
    stage.informers.sync()
    pods = [stage.client.create(pod(name)) for name in "abcd"]
    keys = [each.key for each in pods]
    stage.process_all()
    assert reconciler.keys == keys[:2]
    stage.client.update(pods[3].with_metadata(labels={"changed": "yes"}))
    stage.process_all()
    assert reconciler.keys == [*keys[:2], keys[3]]
    stage.clock.step(pace.lull)
    stage.process_all()
    assert reconciler.keys == [*keys[:2], keys[3], keys[2]]


def test_what_is_new_waits_for_nothing_that_comes_to_another_namespace() -> None:
    reconciler = Scripted()
    pace = Pace(fewest=2)
    stage = Stage(reconciler, new_can_wait=True, pace=pace)
    stage.informers.sync()
    here = [stage.client.create(pod(name)) for name in "abc"]
    there = stage.client.create(pod("d", namespace="there"))
    for _ in range(2):  # of those that need not wait for a pause, more than few, one is handed out each interval
        stage.clock.step(pace.interval)
        stage.process_all()
    assert reconciler.keys == [here[0].key, here[1].key, there.key]


@pytest.mark.parametrize(("after_sync", "looked_at"), [(False, []), (True, [A, B])])
def test_a_resync_has_everything_looked_at_if_the_watch_says_so(after_sync: bool, looked_at: list[Key]) -> None:
    reconciler = Scripted()
    stage = Stage(reconciler, after_sync=after_sync)
    stage.client.create(pod("a"))
    stage.client.create(pod("b"))
    stage.informers.sync()
    stage.process_all()
    del reconciler.keys[:]
    stage.informers.sync()
    stage.process_all()
    assert reconciler.keys == looked_at

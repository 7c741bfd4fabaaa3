"""Tests of the registry of post-start hooks and pre-shutdown hooks."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from ctrlmgr.manager import Hooks, Runnable, process_hooks
from tests.background import DEADLINE, background


class Component:
    """A runnable that records that it ran."""

    name = "component"
    ran = False

    def run(self, stop: threading.Event) -> None:
        self.ran = True


class SlowComponent(Component):
    """A runnable that syncs only when a test says so."""

    is_synced = False

    def has_synced(self) -> bool:
        return self.is_synced


def problems(registry: Hooks) -> list[tuple[str, str | None]]:
    return [(name, problem()) for name, problem in registry.checks]


def run_all(runnables: Sequence[Runnable], stop: threading.Event) -> None:
    for each in runnables:
        each.run(stop)


def test_a_hook_of_runnables_has_finished_when_they_have_started_and_synced() -> None:
    registry, quick, slow = Hooks(), Component(), SlowComponent()
    registry.add_post_start("rbac/bootstrap-roles", quick, slow)
    runnables = [*registry.runnables()]
    assert [each.name for each in runnables] == ["component", "component"]
    assert problems(registry) == [("poststarthook/rbac/bootstrap-roles", "not finished")]
    run_all(runnables, threading.Event())
    assert quick.ran
    assert registry.problem() == "poststarthook/rbac/bootstrap-roles: not finished"
    slow.is_synced = True
    assert problems(registry) == [("poststarthook/rbac/bootstrap-roles", None)]
    slow.is_synced = False
    assert registry.problem() is None, "a hook that has finished once stays finished"


def test_a_hook_can_say_itself_when_it_has_finished() -> None:
    registry, done = Hooks(), threading.Event()
    registry.add_post_start("a", Component(), is_finished=done.is_set)
    run_all([*registry.runnables()], threading.Event())
    assert problems(registry) == [("poststarthook/a", "not finished")]
    done.set()
    assert problems(registry) == [("poststarthook/a", None)]


def test_a_failing_function_is_called_again_until_it_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_hooks, "_FIRST_BACKOFF", 0.001)
    registry, calls, stop = Hooks(), list[threading.Event](), threading.Event()

    def hook(stop: threading.Event) -> None:
        calls.append(stop)
        if len(calls) < 3:
            raise ValueError("not yet")

    registry.add_post_start_function("shop/load", hook)
    (runnable,) = registry.runnables()
    with capture_logs() as lines:
        runnable.run(stop)
    assert calls == [stop] * 3
    assert [(each["event"], each["hook"], each["retry_in"]) for each in lines] == [
        ("post-start hook failed, retrying", "poststarthook/shop/load", 0.001),
        ("post-start hook failed, retrying", "poststarthook/shop/load", 0.002),
    ]
    assert problems(registry) == [("poststarthook/shop/load", None)]


def test_a_failing_hook_stops_with_its_process() -> None:
    registry, called, stop = Hooks(), threading.Event(), threading.Event()

    def hook(stop: threading.Event) -> None:
        called.set()
        raise ValueError("never")

    registry.add_post_start_function("a", hook)
    (runnable,) = registry.runnables()
    running = background(lambda: runnable.run(stop))
    assert called.wait(DEADLINE)
    assert problems(registry) == [("poststarthook/a", "not finished")]
    stop.set()
    running.result(DEADLINE)
    assert problems(registry) == [("poststarthook/a", "not finished")]


def test_pre_shutdown_hooks_run_at_the_stop_even_if_one_fails() -> None:
    registry, calls, stop = Hooks(), list[str](), threading.Event()

    def fails() -> None:
        calls.append("first")
        raise ValueError("broken")

    registry.add_pre_shutdown("first", fails)
    registry.add_pre_shutdown("second", lambda: calls.append("second"))
    (runnable,) = registry.runnables()
    with capture_logs() as lines:
        running = background(lambda: runnable.run(stop))
        assert calls == []
        stop.set()
        running.result(DEADLINE)
    assert calls == ["first", "second"]
    assert [(each["event"], each["hook"]) for each in lines] == [("pre-shutdown hook failed", "first")]


def test_invalid_registrations_are_refused() -> None:
    registry = Hooks()
    registry.add_post_start("a", Component())
    registry.add_pre_shutdown("a", lambda: None)
    with pytest.raises(ValueError, match="unable to add 'a' because it is already registered"):
        registry.add_post_start_function("a", lambda stop: None)
    with pytest.raises(ValueError, match="unable to add 'a' because it is already registered"):
        registry.add_pre_shutdown("a", lambda: None)
    with pytest.raises(ValueError, match="missing name"):
        registry.add_post_start("", Component())
    assert len([*registry.runnables()]) == 2
    with pytest.raises(RuntimeError, match="unable to add 'b' because the hooks have already been called"):
        registry.add_post_start("b", Component())

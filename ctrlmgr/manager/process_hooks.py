"""The registry of a process's post-start hooks and pre-shutdown hooks.

Guarantees:
- Every registered post-start hook has a health check `poststarthook/NAME`. The check fails with "not finished" until
  the hook has finished for the first time.
- A post-start hook that raises an error is called again after a backoff, so a hook must be idempotent. Several
  processes may call their hooks at the same time. The process passes an event to each hook, and sets this event when
  the process stops.
- A pre-shutdown hook is called once when the process stops, while the server still serves. An error of a pre-shutdown
  hook is logged, and the process still stops.
- Hooks cannot be registered after the process has taken the runnables of the registry.

Source: apiserver `pkg/server/hooks.go`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import structlog

from ctrlmgr.manager.runnable import HasSynced, Runnable

log = structlog.get_logger(__name__)

PREFIX: Final = "poststarthook/"
NOT_FINISHED: Final = "not finished"

_FIRST_BACKOFF: Final = 1.0
_LONGEST_BACKOFF: Final = 60.0

Problem = Callable[[], "str | None"]
"""Returns the reason why a health check fails, or None if the check passes."""


class _PostStartHook(NamedTuple):
    is_finished: Callable[[], bool]
    runnables: tuple[Runnable, ...]


class Hooks:
    """The hooks of a process. Hooks are registered on one thread, before the process starts."""

    def __init__(self) -> None:
        """Create a registry without hooks."""
        self._post_start: dict[str, _PostStartHook] = {}
        self._pre_shutdown: dict[str, Callable[[], object]] = {}
        self._is_taken = False

    def add_post_start(self, name: str, *runnables: Runnable, is_finished: Callable[[], bool] | None = None) -> None:
        """Register runnables as one post-start hook.

        `is_finished` returns whether the hook has finished; by default the hook has finished when all its runnables
        have started and synced. Raises `ValueError` if the name is empty or registered already, and `RuntimeError` if
        the process has taken the runnables.
        """
        self._check(name, self._post_start)
        tracked = tuple(_Tracked(each) for each in runnables)
        self._post_start[name] = _PostStartHook(
            _once(is_finished or (lambda: all(each.is_finished for each in tracked))), tracked
        )

    def add_post_start_function(self, name: str, function: Callable[[threading.Event], object]) -> None:
        """Register a function as a post-start hook, which runs on its own thread and has finished when it returns.

        The argument of the function is an event that is set when the process stops. Raises the errors of
        `add_post_start`.
        """
        self._check(name, self._post_start)
        hook = _FunctionHook(name, function)
        self._post_start[name] = _PostStartHook(lambda: hook.is_done, (hook,))

    def add_pre_shutdown(self, name: str, function: Callable[[], object]) -> None:
        """Register a pre-shutdown hook; raises the errors of `add_post_start`."""
        self._check(name, self._pre_shutdown)
        self._pre_shutdown[name] = function

    def _check(self, name: str, known: dict[str, _PostStartHook] | dict[str, Callable[[], object]]) -> None:
        if not name:
            raise ValueError("missing name of a hook")
        if self._is_taken:
            raise RuntimeError(f"unable to add {name!r} because the hooks have already been called")
        if name in known:
            raise ValueError(f"unable to add {name!r} because it is already registered")

    @property
    def checks(self) -> list[tuple[str, Problem]]:
        """Return the name and the problem of each post-start hook's health check, in the order of registration."""
        return [(f"{PREFIX}{name}", _problem(hook.is_finished)) for name, hook in self._post_start.items()]

    def problem(self) -> str | None:
        """Return the name of the first post-start hook that has not finished, with the reason.

        The method returns None if all hooks have finished.
        """
        found = ((name, problem()) for name, problem in self.checks)
        return next((f"{name}: {reason}" for name, reason in found if reason), None)

    def runnables(self) -> Iterator[Runnable]:
        """Yield the runnables of all hooks, in the order of registration; no hook can be registered after this call."""
        self._is_taken = True
        for hook in self._post_start.values():
            yield from hook.runnables
        if self._pre_shutdown:
            yield _PreShutdown(self._pre_shutdown)


class _Tracked:
    """A runnable that records whether it has started."""

    def __init__(self, runnable: Runnable) -> None:
        self.name = runnable.name
        self._runnable = runnable
        self._has_started = False

    @property
    def is_finished(self) -> bool:
        return self._has_started and self.has_synced()

    def has_synced(self) -> bool:
        return not isinstance(self._runnable, HasSynced) or self._runnable.has_synced()

    def run(self, stop: threading.Event) -> None:
        self._has_started = True
        self._runnable.run(stop)


class _FunctionHook:
    """A runnable that calls a function until the function succeeds."""

    def __init__(self, name: str, function: Callable[[threading.Event], object]) -> None:
        self.name = f"{PREFIX}{name}"
        self._function = function
        self.is_done = False

    def run(self, stop: threading.Event) -> None:
        backoff = _FIRST_BACKOFF
        while not stop.is_set():
            try:
                self._function(stop)
            except Exception as error:  # The function may belong to a user's app.
                log.error("post-start hook failed, retrying", hook=self.name, retry_in=backoff, exc_info=error)
                stop.wait(backoff)
                backoff = min(2 * backoff, _LONGEST_BACKOFF)
            else:
                self.is_done = True
                return


class _PreShutdown:
    """A runnable that calls the pre-shutdown hooks one after another when the process stops."""

    name = "pre-shutdown hooks"

    def __init__(self, hooks: dict[str, Callable[[], object]]) -> None:
        self._hooks = hooks

    def run(self, stop: threading.Event) -> None:
        stop.wait()
        for name, function in self._hooks.items():
            try:
                function()
            except Exception as error:  # The function may belong to a user's app.
                log.error("pre-shutdown hook failed", hook=name, exc_info=error)


def _once(is_finished: Callable[[], bool]) -> Callable[[], bool]:
    """Return a function that calls `is_finished` until the result is True, and then always returns True."""
    done = threading.Event()

    def has_finished() -> bool:
        if not done.is_set() and is_finished():
            done.set()
        return done.is_set()

    return has_finished


def _problem(is_finished: Callable[[], bool]) -> Problem:
    return lambda: None if is_finished() else NOT_FINISHED

"""The hooks of an app: functions that a process calls after its start and before its stop.

Guarantees: a hook belongs to the process, so every process that may run the app's controllers calls it, whether it is
the leader or not. The rules for hooks are those of `manager.process_hooks`.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from ctrlmgr.framework.coroutines import blocking
from ctrlmgr.manager.process_hooks import Hooks

Started: TypeAlias = Callable[[threading.Event], Coroutine[Any, Any, object] | object]
"""A function for the start of a process; its argument is an event that is set when the process stops."""
Stopping: TypeAlias = Callable[[], Coroutine[Any, Any, object] | object]
"""A function for the stop of a process."""


class AppHook(NamedTuple):
    """A hook that an app has declared."""

    name: str
    function: Callable[..., Any]


class Hooked(Protocol):
    """An app with hooks."""

    @property
    def name(self) -> str:
        """The app's name."""

    @property
    def started_hooks(self) -> Sequence[AppHook]:
        """The functions for the start of a process."""

    @property
    def stopping_hooks(self) -> Sequence[AppHook]:
        """The functions for the stop of a process."""


def named(function: Callable[..., Any], name: str, parameters: int, known: list[AppHook]) -> AppHook:
    """Return the hook of a function, under `name` or the function's name.

    Raises TypeError if the function does not take this number of parameters, or if the name is taken.
    """
    chosen = name or function.__name__.replace("_", "-").lower()
    if len(inspect.signature(function).parameters) != parameters:
        takes = "takes one thing, the event `stop`" if parameters else "takes nothing"
        raise TypeError(f"hook {chosen}: a function for this hook {takes}")
    if any(each.name == chosen for each in known):
        raise TypeError(f"the app has two hooks that are called {chosen}; give one of them another name with name=")
    return AppHook(chosen, function)


def add_hooks(apps: Iterable[Hooked], hooks: Hooks) -> Hooks:
    """Register the hooks of apps, each under the names of its app and the hook; return `hooks`."""
    for app in apps:
        for each in app.started_hooks:
            hooks.add_post_start_function(f"{app.name}/{each.name}", blocking(each.function))
        for each in app.stopping_hooks:
            hooks.add_pre_shutdown(f"{app.name}/{each.name}", blocking(each.function))
    return hooks

"""Finds the programs besides Python that selected tests need: `python -m tests.project.programs [ARGUMENTS]` prints
their names.

Guarantees: no test is run. A test needs those programs to which its module and its fixtures refer, directly or
indirectly. If the tests cannot be collected (such a test does not exist, or an option is invalid), the command prints
nothing, because pytest prints a better error.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from ctrlmgr.testing.postgres import find_program
from tests.e2e.kubectl import find_kubectl
from tests.eventlog.pooler import find_pgbouncer
from tests.robustness.faults import machine
from tests.ui.browser.chromium import launched

FINDERS: dict[Callable[..., Any], str] = {
    find_program: "postgres",
    find_pgbouncer: "pgbouncer",
    find_kubectl: "kubectl",
    launched: "chromium",
    machine.Network: "faults",
    machine.WallClock: "faults",
}
"""The functions that search for a program, each with the name of the program in `scripts/test`."""
_OURS = ("tests", "ctrlmgr.testing")


class RequiredPrograms:
    """A pytest plugin that collects the names of programs."""

    def __init__(self) -> None:
        """Begin without names."""
        self.names: set[str] = set()
        self._seen: set[int] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Examine the tests that pytest has selected."""
        for item in session.items:
            if item.get_closest_marker("postgres"):
                self.names.add("postgres")
            if isinstance(item, pytest.Function):
                for value in vars(item.module).values():
                    self._look(value, item)
                for name in item.fixturenames:
                    self._look_at_fixture(name, item)

    def _look_at_fixture(self, name: str, item: pytest.Item) -> None:
        for each in item.session._fixturemanager.getfixturedefs(name, item) or ():
            if id(each.func) not in self._seen:
                self._look(each.func, item)
                for used in each.argnames:
                    self._look_at_fixture(used, item)

    def _look(self, value: object, item: pytest.Item) -> None:
        """Follow the references of a function, or of all functions of a class, to other objects."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, dict | list | tuple):
            for member in value.values() if isinstance(value, dict) else value:
                self._look(member, item)
        elif inspect.isclass(value) and self._is_ours(value):
            for member in vars(value).values():
                self._look(getattr(member, "fget", None) or getattr(member, "__func__", member), item)
        elif callable(value) and isinstance(function := inspect.unwrap(value), FunctionType) and self._is_ours(value):
            for found in _referred(function.__code__, function.__globals__):
                self._look(found, item)
            if "getfixturevalue" in function.__code__.co_names:
                for name in filter(_is_text, function.__code__.co_consts):
                    self._look_at_fixture(name, item)

    def _is_ours(self, value: Callable[..., Any]) -> bool:
        """Return whether to examine an object further; record the program if the object is a function that searches for
        a program.
        """
        if name := FINDERS.get(value):
            self.names.add(name)
        return (value.__module__ or "").startswith(_OURS)


def _is_text(constant: object) -> bool:
    return isinstance(constant, str)


def _referred(code: CodeType, names: dict[str, Any]) -> Iterator[object]:
    """Return the objects that a function's names refer to: globals, and imports from our modules."""
    named = [names[name] for name in code.co_names if name in names]
    modules = [each for each in named if isinstance(each, ModuleType) and each.__name__.startswith(_OURS)]
    yield from named
    for module in modules:
        yield from (getattr(module, name, None) for name in code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _referred(constant, names)


def needed(arguments: list[str]) -> set[str]:
    """Return the names of the programs that the tests selected by these pytest arguments need."""
    needs, said = RequiredPrograms(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *arguments], plugins=[needs])
    if code == pytest.ExitCode.INTERNAL_ERROR:
        raise RuntimeError(said.getvalue())
    return needs.names


if __name__ == "__main__":
    sys.stdout.write(" ".join(sorted(needed(sys.argv[1:]))) + "\n")

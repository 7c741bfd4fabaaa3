"""Rules that are written in Python: a file defines a function that returns the behaviour of a container.

    def behaviour(container):
        if container.image.startswith("example.com/batch:"):
            return "exit 1 after 30s" if container.chance < 0.2 else "exit 0 after 30s"

Guarantees: if a file cannot be run or does not define the function, the file is refused with the line and the reason.
If the function raises an error or returns an unknown phrase, the error is reported like an error in an annotation. The
container then behaves as if there were no rule. The function is called whenever a pod is computed. The function must
always return the same result for the same container.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from ctrlmgr.errors import SettingsError
from ctrlmgr.simulation.behaviour import Behaviour, Subject, read

FUNCTION: Final = "behaviour"
_CHANCES: Final = 2**64


class Scripted:
    """The rule that a Python file defines."""

    def __init__(self, path: Path, function: Callable[[ScriptedContainer], Any]) -> None:
        """Create the rule from `function`, which the file `path` defines."""
        self._path = path
        self._function = function

    def behaviour_of(self, subject: Subject) -> Behaviour | None:
        """Return the behaviour of a container; None if the function returns None.

        If the function fails, raises ValueError with the file and the reason.
        """
        try:
            phrases = self._function(ScriptedContainer(subject))
        except Exception as error:  # any error in the user's file is reported
            line = _line(error, self._path)
            raise ValueError(f"{self._path}:{line}: {type(error).__name__}: {error}") from error
        if phrases is None:
            return None
        if not isinstance(phrases, str):
            raise ValueError(f"{self._path}: {FUNCTION}() returned {phrases!r}, not phrases or None")
        try:
            return read(phrases)
        except ValueError as error:
            raise ValueError(f"{self._path}: {FUNCTION}(): {error}") from error


class ScriptedContainer:
    """The argument of the user's function, which describes a container."""

    def __init__(self, subject: Subject) -> None:
        """Copy the fields of the container `subject`."""
        self.namespace = subject.namespace
        """The namespace of the container's pod."""
        self.pod = subject.pod
        """The name of the container's pod."""
        self.container = subject.container
        """The container's name."""
        self.image = subject.image
        """The container's image."""
        self.labels = dict(subject.labels)
        """The labels of the container's pod."""
        self.annotations = dict(subject.annotations)
        """The annotations of the container's pod."""
        self.node = subject.node
        """The name of the pod's node."""

    @property
    def chance(self) -> float:
        """A random number from 0 up to, but not including, 1.

        The random number differs between containers, but is the same in every run of a container.
        """
        digest = blake2b(f"{self.namespace}/{self.pod}/{self.container}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) / _CHANCES


def read_script(path: Path) -> Scripted:
    """Run a file and return its rule; raises `SettingsError` with the line and reason if the file is invalid."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(compile(text, str(path), "exec"), names)  # The server's operator chooses the file, so it may run any code.
    except SyntaxError as error:
        raise SettingsError(f"{path}:{error.lineno or 1}: {error.msg}") from error
    except Exception as error:  # any error in the user's file is reported
        raise SettingsError(f"{path}:{_line(error, path)}: {type(error).__name__}: {error}") from error
    function = names.get(FUNCTION)
    if not callable(function):
        raise SettingsError(f"{path}:1: there is no function `{FUNCTION}(container)`")
    return Scripted(path, function)


def _line(error: BaseException, path: Path) -> int:
    """Return the last line of the user's file that is in the traceback of an error."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
    return (lines[-1] if lines else None) or 1

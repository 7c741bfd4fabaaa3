"""Shortens the tracebacks of failed tests to the frames of the user's code.

Guarantees: a frame outside of this package is never hidden, and `pytest --full-trace` shows all frames.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Final

_PACKAGE: Final = f"{__name__.partition('.')[0]}."


def hide_frames(error: BaseException) -> None:
    """Mark this package's modules in the tracebacks of an error and its causes, so that pytest hides their frames."""
    for each in _chain(error):
        for frame, _ in traceback.walk_tb(each.__traceback__):
            if frame.f_globals.get("__name__", "").startswith(_PACKAGE):
                frame.f_globals["__tracebackhide__"] = True


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that caused it, directly or indirectly."""
    pending: list[BaseException | None] = [error]
    found: dict[int, BaseException] = {}
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in found:
            found[id(each)] = each
            pending += [each.__cause__, each.__context__]
    yield from found.values()

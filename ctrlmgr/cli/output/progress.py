"""A bar on stderr for commands that read a long file; nothing of it where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Place(Protocol):
    """How far a reader has got."""

    @property
    def position(self) -> int:
        """How many of the file's bytes have been read."""

    @property
    def size(self) -> int:
        """How many there are."""

    @property
    def line(self) -> int:
        """How many lines that was."""


@contextmanager
def reading(name: str, *, hidden: bool) -> Iterator[Callable[[Place], None] | None]:
    """Show a bar while the block runs, if stderr is a terminal; yields what to tell it with."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[line]:,} lines"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None, line=0)
        yield lambda at: bar.update(task, completed=at.position, total=at.size, line=at.line)

"""Shows progress bars on stderr during long commands; a bar is shown only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import click


class Place(Protocol):
    """The position of a command in a file that it reads."""

    @property
    def position(self) -> int:
        """The number of bytes that were read so far."""

    @property
    def size(self) -> int:
        """The size of the file in bytes."""

    @property
    def line(self) -> int:
        """The number of lines that were read so far."""


@contextmanager
def reading(name: str, *, hidden: bool) -> Iterator[Callable[[Place], None] | None]:
    """Show a progress bar if stderr is a terminal; yields a function that updates the bar."""
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


@contextmanager
def counting(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar if stderr is a terminal; yields a function that gets the number of events so far."""
    if not sys.stderr.isatty():
        yield lambda events: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=total)
        yield lambda events: bar.update(task, completed=events)


class Runs(Protocol):
    """The progress of a command that does many runs."""

    @property
    def part(self) -> str:
        """The name of the current part of the command."""

    @property
    def finished(self) -> int:
        """The number of finished runs of this part."""

    @property
    def planned(self) -> int:
        """The number of all runs of this part."""


@contextmanager
def parts() -> Iterator[Callable[[Runs], None]]:
    """Show a progress bar with the remaining time if stderr is a terminal; otherwise, print a line for each part."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    if not sys.stderr.isatty():
        yield _print_part
        return
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("preparing", total=None)
        yield lambda runs: bar.update(task, description=runs.part, completed=runs.finished, total=runs.planned)


def _print_part(runs: Runs) -> None:
    if not runs.finished and runs.planned:
        click.echo(f"{runs.part}: {runs.planned} runs", err=True)

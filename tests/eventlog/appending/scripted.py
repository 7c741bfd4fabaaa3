"""A writer that does as it is told, and appends to hand to the line before it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ctrlmgr.errors import AlreadyExists
from ctrlmgr.eventlog.appending.committer import Answer, Committer, Finished
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, thing

Step = Callable[[], None]


class ScriptedWriter:
    """A `GroupWriter` that numbers events itself and goes through a script of failures first."""

    def __init__(self) -> None:
        self.script: list[BaseException] = []
        self.refused: set[str] = set()
        self.before: Step = lambda: None
        self.groups: list[list[str]] = []
        self.sinces: list[int | None] = []
        self.outcomes: list[Finished] = []
        self.threads: list[int] = []
        self.idled = threading.Event()
        self.problem: Exception | None = None
        self.revision = 10

    def commit(
        self, group: Sequence[PendingAppend], outcomes: Sequence[Finished], *, since: int | None
    ) -> list[Answer]:
        self.before()
        self.sinces.append(since)
        self.threads.append(threading.get_ident())
        if self.script:
            raise self.script.pop(0)
        self.groups.append([pending.places[0][2] for pending in group])
        self.outcomes += outcomes
        return [self.answer(pending) for pending in group]

    def answer(self, pending: PendingAppend) -> Answer:
        if pending.places[0][2] in self.refused:
            return AlreadyExists()
        self.revision += 1
        return [pending.event(0, self.revision, 0, b"h")]

    def idle(self) -> None:
        self.idled.set()
        if self.problem is not None:
            raise self.problem


def pending(name: str) -> PendingAppend:
    return PendingAppend([add(thing(name))], AUTHOR, None, None, recorded_at=1, append_id=1)


class Gate:
    """Holds a writer inside a commit until it is opened."""

    def __init__(self, writer: ScriptedWriter) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        writer.before = self.hold

    def hold(self) -> None:
        self.entered.set()
        assert self.opened.wait(10)


def submit(line: Committer, name: str, number: int) -> list[PendingAppend]:
    """Submit so many appends called `name` and a number."""
    appends = [pending(f"{name}{i}") for i in range(number)]
    for append in appends:
        line.submit(append)
    return appends


def hold_group(line: Committer, writer: ScriptedWriter, number: int) -> tuple[Gate, list[PendingAppend]]:
    """Have so many appends that come back be a group, and hold it inside its commit."""
    gate = Gate(writer)
    group = submit(line, "q", number)
    assert gate.entered.wait(10)
    return gate, group


def commit_together(line: Committer, writer: ScriptedWriter, number: int) -> None:
    """Have so many appends be one group, as they are when they come while another is written."""
    gate = Gate(writer)
    line.submit(pending("first"))
    assert gate.entered.wait(10)
    crowd = submit(line, "p", number)
    gate.opened.set()
    crowd[-1].result(10)

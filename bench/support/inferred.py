"""Compares inferred causes with the recorded causes in our own log.

The benchmark exports the log without causes and imports it again, which infers the causes.

An inferred cause is *direct* if it triggered the recorded reconcile, or an earlier reconcile of the same controller and
key that the recorded one continues. The cause is *right* if the chain of recorded causes leads back to it, as in
`ctrlmgr why`; a right cause may be indirect. If a reconcile has neither triggers nor an earlier reconcile, the log
contains no cause for the reconcile, and its inferences are counted separately.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Event, EventLog
from ctrlmgr.eventlog.opening import open_log
from ctrlmgr.inspection.database import open_database
from ctrlmgr.inspection.inferring.inference import Inference
from ctrlmgr.inspection.inferring.rule_application import Inferring
from ctrlmgr.inspection.user_edits import WORKLOADS
from ctrlmgr.recording.capture.export import history, is_api_object
from ctrlmgr.recording.format import ChangeOrigin, RecordingReader, RecordingWriter
from ctrlmgr.recording.importing import Importer

CLIENT = "a client"
_PLAYED_BY = {"simulated-nodes-controller": "kubelet", CLIENT: "kube-apiserver"}
"""The inferred authors that are not controllers; the server itself writes the effects of a client's request."""

_ONE_REQUEST = 6
"""Maximum number of events that one request of a client causes."""


@dataclass
class Row:
    """The numbers of inferences for one controller's writes of one kind."""

    writes: int = 0
    inferred: int = 0
    named: int = 0
    """The number of inferences that name the right controller."""
    untold: int = 0
    """The number of reconciles without a recorded cause."""
    causes: int = 0
    right: int = 0
    direct: int = 0

    def add(self, other: Row) -> None:
        """Add the counts of another row to this row."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


Table = dict[tuple[str, str], Row]
"""The rows by kind and controller."""


def measure(log: EventLog, folder: Path) -> Table:
    """Compare inferences with the recorded causes; the function writes a copy of the log without causes to `folder`."""
    truth = _Truth(log)
    url = _without_causes(log, folder)
    table: Table = defaultdict(Row)
    with open_database(url) as database:
        inferring = Inferring(database)
        for event in truth.written():
            author = truth.author_of(event)
            row = table[str(event.resource), author]
            row.writes += author != CLIENT
            found = inferring.of(event.revision)
            if found is not None:
                _judge(row, found, author, truth, event)
    return dict(table)


def _judge(row: Row, found: Inference, author: str, truth: _Truth, event: Event) -> None:
    row.inferred += 1
    row.named += found.controller == _PLAYED_BY.get(author, author)
    direct, right = truth.causes(event, deep=False), truth.causes(event, deep=True)
    if not direct:
        row.untold += 1
        return
    row.causes += len(found.causes)
    row.direct += sum(each.revision in direct for each in found.causes)
    row.right += sum(each.revision in right for each in found.causes)


def total(rows: Iterable[Row]) -> Row:
    """Return a row with the sums of the rows' counts."""
    found = Row()
    for row in rows:
        found.add(row)
    return found


def _without_causes(log: EventLog, folder: Path) -> str:
    """Import the events of a log from a watch into another log; return the URL of the other log."""
    path = folder / "watched.jsonl"
    with RecordingWriter(path) as writer:
        for change in history(log, lambda obj: is_api_object(obj.resource)):
            writer.change(change.type, change.object, change.recorded_at, ChangeOrigin())
    url = f"sqlite:///{folder / 'imported.db'}"
    imported = open_log(url, clock=SystemClock(), random=random.Random(1), migrate=True)
    try:
        Importer(imported).run(RecordingReader(path))
    finally:
        imported.close()
    return url


class _Truth:
    """The authors and causes that a log contains."""

    def __init__(self, log: EventLog) -> None:
        self._events = {event.revision: event for event in log.scan()}
        ids = {event.reconcile for event in self._events.values() if event.reconcile}
        known = [each for each in map(log.reconcile, ids) if each is not None]
        self._causes = {each.cause.id: each.cause for each in known}
        self._edits: dict[tuple[Resource, Key], list[Revision]] = defaultdict(list)
        for event in self._events.values():
            if not event.reconcile:
                self._edits[event.resource, event.key].append(event.revision)
        self._answered: dict[int, set[Revision]] = {}
        last: dict[tuple[str, str], set[Revision]] = {}
        for cause in sorted(self._causes.values(), key=lambda each: each.started_at):
            place = (cause.controller, cause.key)
            # A reconcile without triggers continues the previous reconcile: it is a retry, or was scheduled by it.
            last[place] = self._answered[cause.id] = set(cause.triggers) or last.get(place, set())

    def written(self) -> Iterator[Event]:
        """Yield the events of the log that a watch also contains."""
        return (event for event in self._events.values() if is_api_object(event.resource))

    def author_of(self, event: Event) -> str:
        """Return the controller that wrote an event; `CLIENT` if no controller wrote it."""
        cause = self._causes.get(event.reconcile)
        return CLIENT if cause is None else cause.controller

    def causes(self, event: Event, *, deep: bool) -> set[Revision]:
        """Return the causes of an event.

        The result contains the causes of all reconciles, or, if a controller and a key are given, only the causes of
        its reconciles of this key.
        """
        if event.reconcile not in self._causes:
            return self._before(event)
        own = self._place(event.reconcile)
        found: set[Revision] = set()
        waiting = self._led_to(event)
        while waiting:
            revision = waiting.pop()
            if revision in found:
                continue
            found.add(revision)
            before = self._events.get(revision)
            is_known = before is not None and before.reconcile in self._causes
            if before is not None and is_known and (deep or self._place(before.reconcile) == own):
                waiting += self._led_to(before)
        return found

    def _before(self, event: Event) -> set[Revision]:
        """Return the earlier writes of the request that wrote an event.

        For example, a client's deletion of a Service also deletes its Endpoints.
        """
        recent = (self._events.get(event.revision - back) for back in range(1, _ONE_REQUEST))
        return {each.revision for each in recent if each and (each.actor, each.key) == (event.actor, event.key)}

    def _place(self, reconcile: int) -> tuple[str, str]:
        cause = self._causes[reconcile]
        return (cause.controller, cause.key)

    def _led_to(self, event: Event) -> list[Revision]:
        """Return the triggers of the reconcile that wrote an event, and the last user edit of the workload."""
        controller, key = self._place(event.reconcile)
        answered = [each for each in self._answered[event.reconcile] if each < event.revision]
        kind = WORKLOADS.get(controller)
        namespace, _, name = key.rpartition("/")
        edits = self._edits.get((kind, Key(namespace, name)), []) if kind is not None else []
        return answered + [each for each in edits if each < event.revision][-1:]

"""Replay: a recording's inputs go into our log, our controllers run, and every checkpoint compares the results.

Guarantees:
- **Deterministic.** One thread, a clock that the recording drives, and injected randomness: replaying a file twice,
  into whichever kind of log, gives the same events and the same chain hash.
- **Nothing smuggled in.** What the recorded controller wrote is never an input; see `expectation`.
- **Nothing lost.** When the recording turns out to be damaged, what stood above is in the log.
- **It ends.** Controllers that never have nothing left to do are a divergence, not a hang.

When our controllers act. They could after every input, but what they would write is looked at only where it can make
a difference: at a checkpoint, and where it is about to become history that later results depend on. A recording shows
where that is. So our controller acts on an object, if its own watches have given it a reason to,

1. before an input changes that object: a client edited what the controller had made until then, and the edit stands
   until there is a reason to act that came after it;
2. where the recorded controller created or deleted it: with an object goes what clients had added to it;
3. before its parent (the service) changes or goes, if the recorded controller has written it since ours acted: a
   service that loses its selector leaves behind what was made until then. If the recorded one has not written, it had
   not acted on the reasons that ours has, and ours must not either;
4. at a checkpoint, after letting virtual time pass until no retry or delay is left.

One hint is taken from the recorded writes. Where the recorded controller overwrote a client's edit that stands in our
log, the two had crossed: it had a reason from before the edit and acted after it, where ours acted before (1). Then
ours is told to look at that object without a reason of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.clock import parse_time
from ctrlmgr.eventlog import EventLog, EventType
from ctrlmgr.informer import Change as StoreChange
from ctrlmgr.informer import Informer
from ctrlmgr.interpreter import collector_paused
from ctrlmgr.recording.clock import ReplayClock
from ctrlmgr.recording.divergence import Divergence, Verdict, comparable, differences
from ctrlmgr.recording.expectation import Expectation, Ownership, ownerships_of
from ctrlmgr.recording.format import Change, Checkpoint, RecordingReader
from ctrlmgr.recording.report import Findings, Report
from ctrlmgr.recording.stage import CONTROLLERS, ControllerBuilder, Restless, Stage

_TELL_AFTER = 500
"""Entries after which progress is told."""


class Progress(NamedTuple):
    """How far a replay is: at `line` of the recording, with `position` of its file's `size` bytes read."""

    line: int
    position: int
    size: int


class _OwnedKind:
    """One owned kind: what is recorded of it, and what our log has."""

    def __init__(self, ownership: Ownership, informer: Informer) -> None:
        self.ownership = ownership
        self.expectation = Expectation(ownership)
        self.lister = informer.lister
        self.changed: set[Key] = set()  # in our log, since the last checkpoint
        self.edits: dict[Key, bytes] = {}  # the last client's edit of each object, until somebody else writes it
        self.behind: set[Key] = set()  # what the recorded controller has written since ours acted on it
        informer.add_handler(self._on_change)

    def _on_change(self, change: StoreChange) -> None:
        obj = change.new or change.old
        if obj is not None:
            self.changed.add(obj.key)

    def compare(self, checkpoint: Checkpoint, key: Key) -> Divergence | None:
        """Compare one object; None if it is as recorded."""
        recorded, ours = self.expectation.objects.get(key), self.lister.get(key)
        found = tuple(differences(recorded and comparable(recorded), ours and comparable(ours)))
        if not found:
            return None
        verdict = Verdict.DIFFERS if recorded and ours else Verdict.MISSING if recorded else Verdict.UNEXPECTED
        resource = str(self.ownership.resource)
        found = found if verdict is Verdict.DIFFERS else ()
        return Divergence(checkpoint.name, checkpoint.line, verdict, resource, key.namespace, key.name, found)


class Replay:
    """Replays one recording into one log; for one thread."""

    def __init__(
        self,
        log: EventLog,
        clock: ReplayClock,
        *,
        controllers: Mapping[str, ControllerBuilder] = CONTROLLERS,
        caches: Iterable[Resource] = (),
    ) -> None:
        """Replay into an empty log made by `open_replay_log`; raises `SettingsError` if it holds events already.

        Without any controllers the whole recording is input: it is loaded, and nothing is compared. `caches` are
        kept beside those that the controllers need.
        """
        self._stage = Stage(log, clock, controllers)
        for resource in caches:
            self._stage.informer(resource)
        self._owned = {
            ownership.resource: _OwnedKind(ownership, self._stage.informer(ownership.resource))
            for ownership in ownerships_of(controllers)
        }
        self._findings = Findings()
        self._file = ""
        self._seconds = 0.0
        self._events = self._checkpoints = self._compared = 0

    def run(self, reader: RecordingReader, on_progress: Callable[[Progress], None] | None = None) -> Report:
        """Replay everything `reader` yields and return what was found.

        Raises `RecordingError` as the reader does, after everything above the fault has gone into the log:
        `report` then tells how far that is. `on_progress` is called every few hundred lines.
        """
        self._file = reader.path
        began = time.perf_counter()  # the one reading of real time: it goes into the report's rate only
        try:
            with collector_paused(freeze=True):  # a log in memory is hundreds of thousands of objects that stay
                self._stage.start()
                self._play(reader, on_progress)
        except Restless as restless:
            self._find_restless(str(restless), reader)
        finally:
            self._stage.follow()
            self._stage.log.flush()
            self._seconds = time.perf_counter() - began
        return self.report()

    def report(self) -> Report:
        """Return what was found so far."""
        head = self._stage.log.head()
        return Report(
            file=self._file,
            events=self._events,
            inputs=self._stage.inputs,
            reconciles=self._stage.reconciles,
            writes=head.revision - self._stage.inputs,
            checkpoints=self._checkpoints,
            objects_compared=self._compared,
            divergences=self._findings.all(),
            revision=head.revision,
            hash=head.hash.hex(),
            seconds=self._seconds,
        )

    def _play(self, reader: RecordingReader, on_progress: Callable[[Progress], None] | None) -> None:
        next_telling = 0
        for entry in reader:
            if isinstance(entry, Checkpoint):
                self._check(entry)
            else:
                self._take(entry)
            if on_progress and reader.line >= next_telling:
                next_telling = reader.line + _TELL_AFTER
                on_progress(Progress(reader.line, reader.position, reader.size))
        if not self._checkpoints:  # a plain watch has none: its end is the best that there is
            self._check(Checkpoint(reader.line, "end of the recording", reader.revision))

    def _take(self, change: Change) -> None:
        self._events += 1
        self._stage.advance_to(_moment(change))
        owned = self._owned.get(change.object.resource)
        if owned is None:
            self._observe(change)
            self._stage.append(change.type, change.object)
        elif owned.expectation.take(change):
            self._edit(owned, change)
        else:
            self._follow_suit(owned, change)

    def _observe(self, change: Change) -> None:
        for owned in self._owned.values():
            owned.expectation.observe(change)
            if change.object.resource == owned.ownership.parent and change.object.key in owned.behind:
                self._act(owned, change.object.key)

    def _edit(self, owned: _OwnedKind, change: Change) -> None:
        """Make an input of somebody else's change of an owned kind; it is told of *our* object, if there is one."""
        key = change.object.key
        self._act(owned, key)
        ours = owned.lister.get(key)
        owned.edits.pop(key, None)
        if change.type is EventType.DELETED:
            if ours is not None:
                self._stage.append(EventType.DELETED, ours)
            return
        edited = _as_incarnation_of(ours, change.object)
        owned.edits[key] = edited.body
        self._stage.append(EventType.ADDED if ours is None else EventType.MODIFIED, edited)

    def _follow_suit(self, owned: _OwnedKind, change: Change) -> None:
        """Let our controller act where the recorded one did, at once if that matters; see the module's docstring."""
        key = change.object.key
        edit = owned.edits.pop(key, None)
        if change.type is EventType.MODIFIED and edit is None:
            owned.behind.add(key)
            return
        self._act(owned, key)
        ours = owned.lister.get(key)
        if edit is not None and ours is not None and ours.body == edit:
            self._stage.act(owned.ownership.controller, key, unasked=True)

    def _act(self, owned: _OwnedKind, key: Key) -> None:
        owned.behind.discard(key)
        self._stage.act(owned.ownership.controller, key)

    def _check(self, checkpoint: Checkpoint) -> None:
        self._stage.settle()
        self._checkpoints += 1
        for resource, owned in self._owned.items():
            keys = owned.changed | owned.expectation.changed | self._findings.open_keys(resource)
            for key in sorted(keys):
                self._findings.add(resource, key, owned.compare(checkpoint, key))
            # What changed on neither side since it was compared last is equal still.
            everything = owned.expectation.objects.keys() | {obj.key for obj in owned.lister.list()}
            self._compared += len(everything)
            owned.changed.clear()
            owned.behind.clear()
            owned.expectation.checkpoint(checkpoint.revision)

    def _find_restless(self, controller: str, reader: RecordingReader) -> None:
        place = f"line {reader.line}"
        self._findings.add_final(
            Divergence(place, reader.line, Verdict.RESTLESS, "controller", "", controller, differences=())
        )


def _moment(change: Change) -> int:
    """Return when a change was recorded; when that is not said, the one time that every object carries."""
    if change.recorded_at:
        return change.recorded_at
    try:
        return parse_time(change.object.metadata.creation_timestamp or "")
    except ValueError:
        return 0  # the clock stays where it is


def _as_incarnation_of(ours: Object | None, recorded: Object) -> Object:
    """Return `recorded` with the identity of the object that stands in its place in our log."""
    if ours is None or ours.uid == recorded.uid:
        return recorded
    return recorded.with_metadata(uid=ours.uid, creation_timestamp=ours.metadata.creation_timestamp)

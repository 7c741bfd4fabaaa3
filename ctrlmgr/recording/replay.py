"""Replay: a recording's inputs go into our log, our controllers run, and every checkpoint compares the results.

Guarantees:
- **Deterministic.** One thread, a clock that the recording drives, and injected randomness: replaying a file twice,
  into whichever kind of log, gives the same events and the same chain hash.
- **Nothing smuggled in.** What the recorded controller wrote is never an input; see `expectation`. Objects that
  existed when the recording began are inputs: see `opening`.
- **Nothing lost.** When the recording turns out to be damaged, what stood above is in the log.
- **It ends.** Controllers that never have nothing left to do are a divergence, not a hang.

When our controllers act is each owned kind's business: see `owned.endpoints`, `owned.slices` and `owned.shared`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Resource, Revision
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.namespace.controller import CONTROLLER_NAME as NAMESPACE_CONTROLLER
from ctrlmgr.errors import RecordingError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.interpreter import collector_paused
from ctrlmgr.recording.builders import CONTROLLERS, ControllerBuilder
from ctrlmgr.recording.clock import ReplayClock
from ctrlmgr.recording.divergence import Divergence, Verdict
from ctrlmgr.recording.every_write import Moments, Plan, WriteTracker
from ctrlmgr.recording.expectation import OWNERSHIPS, Ownership, ownerships_of
from ctrlmgr.recording.format import Change, Checkpoint, RecordingReader
from ctrlmgr.recording.judged.autoscalers import JudgedAutoscalers
from ctrlmgr.recording.opening import Placed, placed
from ctrlmgr.recording.owned.endpoints import OwnedEndpoints
from ctrlmgr.recording.owned.namespaces import OwnedNamespaces
from ctrlmgr.recording.owned.ownership import Owned, divergence_at
from ctrlmgr.recording.owned.shared import SHARED, SharedKinds
from ctrlmgr.recording.owned.slices import MANAGERS, OwnedSlices
from ctrlmgr.recording.report import Findings, Report, Unjudged
from ctrlmgr.recording.stage import Restless, Stage

JUDGED = ("horizontal-pod-autoscaler-controller",)
"""The controllers that are not run, but asked for what the recorded ones decided."""

_TELL_AFTER = 500
"""Entries after which progress is told."""

_AHEAD = 1_000
"""Entries, at most, that are read before they are played: who made what tells what ours are to call their own."""


class Progress(NamedTuple):
    """How far a replay is: at `line` of the recording, with `position` of its file's `size` bytes read."""

    line: int
    position: int
    size: int


class Replay:
    """Replays one recording into one log; for one thread."""

    _namespaces: OwnedNamespaces | None = None
    _slices: OwnedSlices | None = None

    def __init__(
        self,
        log: EventLog,
        clock: ReplayClock,
        *,
        controllers: Mapping[str, ControllerBuilder] = CONTROLLERS,
        caches: Iterable[Resource] = (),
        owns: Iterable[Ownership] = (),
        shares: Mapping[str, Sequence[Resource]] | None = None,
        judges: Collection[str] = JUDGED,
        tracks: bool = False,
        plan: Plan | None = None,
    ) -> None:
        """Replay into an empty log made by `open_replay_log`; raises `SettingsError` if it holds events already.

        Without any controllers the whole recording is input: it is loaded, and nothing is compared. `caches` are
        kept beside those that the controllers need. `owns` says of controllers that are not ours what they write, and
        as whom in the recording: that is expected of them then. `shares` says of such controllers which kinds they and
        clients both write; the recorded ones wrote under their names. `judges` are names of controllers that are only
        asked for what the recorded ones decided. With `tracks`, each single write is compared, and our controllers
        answer every input at once, or when the `plan` says: see `every_write`.
        """
        self._stage = Stage(log, clock, controllers)
        for resource in caches:
            self._stage.informer(resource)
        shared = {name: kinds for name, kinds in {**SHARED, **(shares or {})}.items() if name in controllers}
        self._shared = SharedKinds(self._stage, shared) if shared else None
        self._given: list[OwnedEndpoints] = []  # what `owns` says, as far as its controllers run
        self._owned: dict[Resource, Owned] = {owned.resource: owned for owned in self._own(controllers, owns)}
        self._watching = [owned for owned in self._owned.values() if not owned.is_shared]  # what other kinds concern
        self._expecting = [each for each in self._watching if each.expects_others]
        self._autoscalers = self._judging() if controllers and judges else None
        self._findings = Findings()
        self._moments: Moments = plan.moments if plan is not None else {}
        self._tracker = WriteTracker() if tracks else None
        self._prompt: tuple[str, ...] = ()  # the controllers that answer each input at once
        if self._tracker is not None:
            self._stage.writings.append(self._tracker)
            every = [name for owned in self._owned.values() for name in owned.track(self._tracker)]
            self._prompt = tuple(dict.fromkeys(every)) if plan is None else ()
        if plan is not None and self._namespaces is not None:
            self._namespaces.known_held = plan.held
        self._past = 0  # entries of the past that have been foreseen and not played
        self._file = ""
        self._seconds = 0.0
        self._line = self._events = self._checkpoints = self._compared = 0

    def _own(self, controllers: Iterable[str], owns: Iterable[Ownership]) -> Iterator[Owned]:
        """Yield what is owned when controllers of these names run."""
        given = tuple(owns)
        for ownership in ownerships_of(controllers, (*OWNERSHIPS, *given)):
            owned = OwnedEndpoints(self._stage, ownership)
            if ownership in given:
                self._given.append(owned)
            yield owned
        if keepers := [name for name in controllers if name in MANAGERS]:
            self._slices = OwnedSlices(self._stage, keepers)
            yield self._slices
        if NAMESPACE_CONTROLLER in controllers:
            self._namespaces = OwnedNamespaces(self._stage, self._stage.kinds)
            yield self._namespaces
        if self._shared is not None:
            yield from self._shared.kinds

    def _judging(self) -> JudgedAutoscalers:
        shared, pods = self._shared, self._stage.informer(PODS).lister

        def recorded(namespace: str) -> list[Object]:
            found = shared.recorded(PODS, namespace) if shared is not None else None
            if found is not None:
                return found
            self._stage.follow()  # all of them are inputs
            return list(pods.list(namespace))

        return JudgedAutoscalers(lambda: self._stage.kinds, recorded)

    def run(self, reader: RecordingReader, on_progress: Callable[[Progress], None] | None = None) -> Report:
        """Replay everything `reader` yields and return what was found.

        Raises `RecordingError`, and whatever ends it, as the reader does, after everything above the fault has gone
        into the log: `report` then tells how far that is. `on_progress` is called every few hundred lines.
        """
        self._file = reader.path
        began = time.perf_counter()  # the one reading of real time: it goes into the report's rate only
        try:
            with collector_paused(freeze=True):  # a log in memory is hundreds of thousands of objects that stay
                self._stage.start()
                self._play(reader, on_progress)
        except Restless as restless:
            self._find_restless(str(restless))
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
            decisions_compared=0 if self._autoscalers is None else self._autoscalers.judged,
            divergences=self._divergences(),
            paired=() if self._tracker is None else self._tracker.paired(),
            unjudged=tuple(self._unjudged()),
            revision=head.revision,
            hash=head.hash.hex(),
            seconds=self._seconds,
        )

    def unmatched(self) -> Sequence[Ownership]:
        """Return those of `owns` of which nothing in the recording was written as they say."""
        return [owned.ownership for owned in self._given if not owned.expected]

    def plan(self) -> Plan:
        """Return what another replay of the same recording needs to know, to write when the recorded ones did."""
        held = self._namespaces.held if self._namespaces is not None else {}
        return Plan({} if self._tracker is None else self._tracker.moments(), held)

    def _divergences(self) -> tuple[Divergence, ...]:
        found = self._findings.all()
        if self._tracker is None:
            return found
        return tuple(sorted((*found, *self._tracker.divergences()), key=lambda each: (each.line, each.subject)))

    def _unjudged(self) -> Iterator[Unjudged]:
        if self._autoscalers is not None:
            yield from self._autoscalers.unjudged()
        for owned in self._owned.values():
            yield from owned.unjudged()

    def _play(self, reader: RecordingReader, on_progress: Callable[[Progress], None] | None) -> None:
        next_telling = 0
        for entry, is_past in self._ahead(reader):
            self._line = entry.line
            if isinstance(entry, Checkpoint):
                self._check(entry)
            elif is_past:
                self._take_past(entry)
            else:
                self._take(entry)
            if on_progress and entry.line >= next_telling:
                next_telling = entry.line + _TELL_AFTER
                on_progress(Progress(entry.line, reader.position, reader.size))
        if not self._checkpoints:  # a plain watch has none: its end is the best that there is
            self._check(Checkpoint(reader.line, "end of the recording", reader.revision))

    def _ahead(self, reader: RecordingReader) -> Iterator[Placed]:
        """Yield the entries of a recording, each when as many more have been foreseen as may be.

        What is wrong with the recording is raised after everything above it.
        """
        shared = self._shared
        entries = placed(reader)
        if shared is None:
            yield from entries
            return
        waiting: deque[Placed] = deque()
        fault: RecordingError | None = None
        while True:
            try:
                found = next(entries, None)
            except RecordingError as error:
                fault, found = error, None
            if found is None:
                break
            if isinstance(found.entry, Change):
                self._past += found.is_past
                shared.foresee(found.entry, is_past=found.is_past)
                if self._tracker is not None and self._slices is not None:
                    self._slices.foresee(found.entry)
            waiting.append(found)
            if len(waiting) > _AHEAD:
                yield waiting.popleft()
        yield from waiting
        if fault is not None:
            raise fault

    def _take_past(self, change: Change) -> None:
        """Put a change that belongs to the past into our log; our controllers act once all of it is there."""
        self._events += 1
        self._past -= 1
        self._stage.advance_to(_moment(change))
        if self._autoscalers is not None:
            self._autoscalers.observe(change)
        for each in self._watching:
            each.observe(change)
        owned = self._owned.get(change.object.resource)
        if owned is not None and owned.is_shared:
            owned.observe(change)
        if owned is None or not owned.take_past(change):
            self._stage.append(change.type, change.object)

    def _take(self, change: Change) -> None:
        self._events += 1
        moment = _moment(change)
        if self._shared is not None and self._past <= 0:
            self._shared.before(moment, change.object.revision)
        if self._tracker is not None:
            self._tracker.position = change.object.revision
        self._stage.advance_to(moment)
        if self._autoscalers is not None and (found := self._autoscalers.observe(change)) is not None:
            self._findings.add_final(found)
        owned = self._owned.get(change.object.resource)
        is_shared = owned is not None and owned.is_shared
        expected = (owned is None or is_shared) and self._is_expected(change)
        for each in self._watching:
            each.observe(change)
        if owned is not None and is_shared:
            owned.observe(change)
        if not expected and (owned is None or not owned.take(change)):
            self._stage.append(change.type, change.object)
        self._answer(change.object.revision)

    def _answer(self, revision: Revision) -> None:
        """Let our controllers act where every write is replayed: on each input, or where the recorded ones had."""
        if self._prompt:
            self._stage.answer(self._prompt)
        for resource, subject in self._moments.get(revision, ()):
            self._owned[resource].act_on(subject)

    def _is_expected(self, change: Change) -> bool:
        """Whether a change of a kind that several write is what one of our controllers has to come to by itself."""
        return any(each.expects(change) for each in self._expecting)

    def _check(self, checkpoint: Checkpoint) -> None:
        for owned in self._owned.values():
            owned.prepare()
        self._stage.settle()
        if self._shared is not None and self._stage.has_reasons():
            self._shared.at_checkpoint()  # what others have just done concerns them
        self._checkpoints += 1
        for resource, owned in self._owned.items():
            # What changed on neither side since it was compared last is equal still.
            for subject in sorted({*owned.changed, *self._findings.open_keys(resource)}):
                self._findings.add(resource, subject, divergence_at(checkpoint, owned, subject))
            self._compared += len(owned.subjects)
            owned.passed(checkpoint.revision)

    def _find_restless(self, controller: str) -> None:
        place = f"line {self._line}"
        self._findings.add_final(
            Divergence(place, self._line, Verdict.RESTLESS, "controller", "", controller, differences=())
        )


def _moment(change: Change) -> int:
    """Return when a change was recorded; when that is not said, the one time that every object carries."""
    if change.recorded_at:
        return change.recorded_at
    try:
        return parse_time(change.object.metadata.creation_timestamp or "")
    except ValueError:
        return 0  # the clock stays where it is

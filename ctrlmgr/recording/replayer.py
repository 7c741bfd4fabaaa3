"""A replay appends a recording's inputs to our log, runs our controllers, and compares the results at every checkpoint.

Guarantees:

- **Deterministic.** A replay has one thread, a clock that follows the recording, and injected randomness. Each replay
  of the same file, into any type of log, produces the same events and the same chain hash.
- **Independent.** The writes of the recorded controllers are never inputs (`expectation`). Objects that existed when
  the recording began are inputs (`initial_entries`).
- **Complete.** If the recording is damaged, the log contains all entries before the fault.
- **Terminating.** If controllers never become quiescent, the replay ends and reports this as a divergence.

Each owned kind decides when our controllers act; see `owned.replayed_endpoints`, `owned.replayed_slices` and
`owned.replayed_workloads`.
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
from ctrlmgr.recording.autoscaler_replay.autoscalers import JudgedAutoscalers
from ctrlmgr.recording.expectation import OWNERSHIPS, Ownership, ownerships_of
from ctrlmgr.recording.format import Change, Checkpoint, RecordingReader
from ctrlmgr.recording.initial_entries import PlacedEntry, placed
from ctrlmgr.recording.object_comparison import Divergence, Verdict
from ctrlmgr.recording.owned.ownership import KindOwnership, divergence_at
from ctrlmgr.recording.owned.replayed_endpoints import OwnedEndpoints
from ctrlmgr.recording.owned.replayed_namespaces import OwnedNamespaces
from ctrlmgr.recording.owned.replayed_slices import MANAGERS, OwnedSlices
from ctrlmgr.recording.owned.replayed_workloads import SHARED, SharedKinds
from ctrlmgr.recording.replay_stage import NotQuiescent, ReplayStage
from ctrlmgr.recording.replayed_controllers import CONTROLLERS, ControllerBuilder
from ctrlmgr.recording.report import Findings, Report, UncomparedCounts
from ctrlmgr.recording.virtual_clock import ReplayClock
from ctrlmgr.recording.write_pairing import Moments, Plan, WriteTracker

JUDGED = ("horizontal-pod-autoscaler-controller",)
"""The names of controllers that do not run in a replay, but repeat the decisions in the recording."""

_TELL_AFTER = 500
"""The number of entries between two progress reports."""

_AHEAD = 1_000
"""Maximum number of entries that are read ahead, to find names for the objects that our controllers create."""


class Progress(NamedTuple):
    """The progress of a replay: the current `line`, and the `position` in the file of `size` bytes."""

    line: int
    position: int
    size: int


class Replay:
    """Replays one recording into one log; only one thread may use an instance."""

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
        """Create a replay into an empty log of `open_replay_log`; raises `SettingsError` if the log has events.

        If no controllers are given, all recorded changes are inputs, and nothing is compared. `caches` are the
        resources that are cached in addition to those of the controllers. `owns` specifies the kinds that other
        controllers own, and the field managers of these controllers in the recording. `shares` specifies the kinds that
        such controllers share with clients; their names are the field managers. `judges` are controllers that do not
        run, but repeat the decisions in the recording. If `tracks` is set, each single write is compared; our
        controllers act after every input, or at the times in `plan` (`write_pairing`).
        """
        self._stage = ReplayStage(log, clock, controllers)
        for resource in caches:
            self._stage.informer(resource)
        shared = {name: kinds for name, kinds in {**SHARED, **(shares or {})}.items() if name in controllers}
        self._shared = SharedKinds(self._stage, shared) if shared else None
        self._given: list[OwnedEndpoints] = []  # the entries of `owns` for the running controllers
        self._owned: dict[Resource, KindOwnership] = {owned.resource: owned for owned in self._own(controllers, owns)}
        # owned kinds that are notified of changes of other kinds
        self._watching = [owned for owned in self._owned.values() if not owned.is_shared]
        self._expecting = [each for each in self._watching if each.expects_others]
        self._autoscalers = self._judging() if controllers and judges else None
        self._findings = Findings()
        self._moments: Moments = plan.moments if plan is not None else {}
        self._tracker = WriteTracker() if tracks else None
        self._prompt: tuple[str, ...] = ()  # names of the controllers that act after each input
        if self._tracker is not None:
            self._stage.writings.append(self._tracker)
            every = [name for owned in self._owned.values() for name in owned.track(self._tracker)]
            self._prompt = tuple(dict.fromkeys(every)) if plan is None else ()
        if plan is not None and self._namespaces is not None:
            self._namespaces.known_held = plan.held
        self._past = 0  # entries of the past that were read ahead and not played
        self._file = ""
        self._seconds = 0.0
        self._line = self._events = self._checkpoints = self._compared = 0

    def _own(self, controllers: Iterable[str], owns: Iterable[Ownership]) -> Iterator[KindOwnership]:
        """Yield the owned kinds of the controllers with these names."""
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
            self._stage.follow()  # all recorded changes are inputs
            return list(pods.list(namespace))

        return JudgedAutoscalers(lambda: self._stage.kinds, recorded)

    def run(self, reader: RecordingReader, on_progress: Callable[[Progress], None] | None = None) -> Report:
        """Replay all entries of `reader` and return the report.

        Raises `RecordingError` and other errors of the reader, after all entries before the fault were appended;
        `report` then returns the partial result. `on_progress` is called after every few hundred lines.
        """
        self._file = reader.path
        began = time.perf_counter()  # real time is used only for the rate in the report
        try:
            # A garbage collection would be slow, because a log in memory has hundreds of thousands of objects.
            with collector_paused(freeze=True):
                self._stage.start()
                self._play(reader, on_progress)
        except NotQuiescent as restless:
            self._find_restless(str(restless))
        finally:
            self._stage.follow()
            self._stage.log.flush()
            self._seconds = time.perf_counter() - began
        return self.report()

    def report(self) -> Report:
        """Return the report about the part that was replayed so far."""
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
        """Return the entries of `owns` without a matching write in the recording."""
        return [owned.ownership for owned in self._given if not owned.expected]

    def plan(self) -> Plan:
        """Return the plan for a second replay, in which controllers act at the recorded times."""
        held = self._namespaces.held if self._namespaces is not None else {}
        return Plan({} if self._tracker is None else self._tracker.moments(), held)

    def _divergences(self) -> tuple[Divergence, ...]:
        found = self._findings.all()
        if self._tracker is None:
            return found
        return tuple(sorted((*found, *self._tracker.divergences()), key=lambda each: (each.line, each.subject)))

    def _unjudged(self) -> Iterator[UncomparedCounts]:
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
        if not self._checkpoints:  # the recording of a watch has no checkpoints, so its end serves as one
            self._check(Checkpoint(reader.line, "end of the recording", reader.revision))

    def _ahead(self, reader: RecordingReader) -> Iterator[PlacedEntry]:
        """Yield the entries of a recording, each after a number of later entries was read ahead.

        A fault in the recording is raised after all entries before it.
        """
        shared = self._shared
        entries = placed(reader)
        if shared is None:
            yield from entries
            return
        waiting: deque[PlacedEntry] = deque()
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
        """Append a change of the past; our controllers act only after all changes of the past."""
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
        """If every write is compared, let our controllers act after each input, or at the times in the plan."""
        if self._prompt:
            self._stage.answer(self._prompt)
        for resource, subject in self._moments.get(revision, ()):
            self._owned[resource].act_on(subject)

    def _is_expected(self, change: Change) -> bool:
        """Return whether a change of another kind is expected from our controllers."""
        return any(each.expects(change) for each in self._expecting)

    def _check(self, checkpoint: Checkpoint) -> None:
        for owned in self._owned.values():
            owned.prepare()
        self._stage.settle()
        if self._shared is not None and self._stage.has_reasons():
            self._shared.at_checkpoint()  # the last writes of the other controllers affect these controllers
        self._checkpoints += 1
        for resource, owned in self._owned.items():
            # Objects that have changed on neither side need no comparison, because they are still equal.
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
    """Return the time at which a change was recorded; if the line has no time, return the object's creation time."""
    if change.recorded_at:
        return change.recorded_at
    try:
        return parse_time(change.object.metadata.creation_timestamp or "")
    except ValueError:
        return 0  # do not advance the clock

"""Replays recordings in tests: runs controllers on a recording, and returns the result.

Guarantees: a replay runs in the test's thread on virtual time, so it is fast and deterministic. A test can read the log
of a replay until the next replay or the end of the test. The test's own logging is not changed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.controllers import registry
from ctrlmgr.eventlog import EventLog
from ctrlmgr.framework.app import App
from ctrlmgr.framework.app_replays import replayed
from ctrlmgr.recording.expectation import Ownership
from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.object_comparison import Divergence
from ctrlmgr.recording.replay_stage import open_replay_log
from ctrlmgr.recording.replayed_controllers import CONTROLLERS, ControllerBuilder
from ctrlmgr.recording.replayer import Replay
from ctrlmgr.recording.report import Report
from ctrlmgr.recording.twice import planned
from ctrlmgr.recording.virtual_clock import ReplayClock

__all__ = ["ControllerBuilder", "NothingCompared", "Ownership", "Replayer", "shown"]


class NothingCompared(AssertionError):
    """Raised if a replay compared no writes, so that the test would prove nothing."""


class Replayer:
    """A context manager that replays recordings one after another. The fixture `replay` returns an instance."""

    def __init__(self, folder: Path) -> None:
        """Create an instance that searches for recordings in `folder`, unless their paths are absolute."""
        self._folder = folder
        self._log: EventLog | None = None

    def __call__(
        self,
        recording: str | Path,
        controllers: Iterable[str] | Mapping[str, ControllerBuilder] | None = None,
        *,
        owns: Iterable[Ownership] = (),
        apps: Iterable[App] = (),
        database: str = "memory:",
        every_write: bool = False,
        must_compare: bool = True,
    ) -> Report:
        """Replay `recording` into an empty log and return a report.

        `controllers` are the names of built-in controllers (by default all), or a mapping of names to builders. A
        builder with the name of a built-in controller replaces that controller, and its writes are compared with the
        recorded ones. If a builder has any other name, `owns` says which kind the controller writes, and under which
        field manager its writes were recorded. The controllers of `apps` are also run. If `every_write` is set, each
        single write is also compared with the recording.

        Raises `RecordingError` if the recording is invalid, `SettingsError` for an unknown controller or a `database`
        with events. If `must_compare` is set and no writes were compared, raises `NothingCompared`.
        """
        self.close()
        clock = ReplayClock()
        ours = replayed(apps)
        built = {**_builders(controllers), **ours.builders}
        _require_controllers(owns := tuple(owns), built)
        make = partial(Replay, controllers=built, owns=owns, shares=ours.shares)
        path = self._folder / recording
        with _quiet():
            plan = planned(make, RecordingReader(path)) if every_write else None
            self._log = log = open_replay_log(database, clock)
            run = make(log, clock, tracks=every_write, plan=plan)
            report = run.run(RecordingReader(path))
        if built and must_compare:
            _require_comparison(run, report)
        return report

    @property
    def log(self) -> EventLog:
        """The log of the last replay, with the inputs and the controllers' writes."""
        if self._log is None:
            raise RuntimeError("nothing has been replayed yet")
        return self._log

    def get(self, resource: str, name: str, namespace: str = "") -> Object | None:
        """Return the state of an object at the end of the last replay.

        `resource` is a name as kubectl accepts it, such as `pods`.
        """
        return self.log.get(Resource.parse(resource), Key(namespace, name))

    def close(self) -> None:
        """Close the log of the last replay if it is open."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def __enter__(self) -> Replayer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _require_controllers(owns: Iterable[Ownership], controllers: Mapping[str, ControllerBuilder]) -> None:
    for each in owns:
        if each.controller not in controllers:
            raise NothingCompared(f"{each.controller} owns {each.resource}, but does not run")


def _require_comparison(run: Replay, report: Report) -> None:
    for each in run.unmatched():
        message = f"{each.controller} owns {each.resource}, but the field manager {each.manager} wrote none of them"
        raise NothingCompared(f"{message} in {report.file}")
    if not report.objects_compared and not report.decisions_compared:
        message = "none of its writes came from the components that the running controllers replace"
        raise NothingCompared(f"no object in {report.file} was compared: {message}")


def _builders(controllers: Iterable[str] | Mapping[str, ControllerBuilder] | None) -> Mapping[str, ControllerBuilder]:
    if controllers is None:
        return CONTROLLERS
    if isinstance(controllers, Mapping):
        return controllers
    names = [controllers] if isinstance(controllers, str) else list(controllers)
    replayed = [each for each in registry.ALL if each.replays]
    return {each.name: CONTROLLERS[each.name] for each in registry.enabled(names, replayed).descriptors}


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the controllers' log lines, unless the test has configured logging."""
    if structlog.is_configured():
        yield
        return
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        yield
    finally:
        structlog.reset_defaults()


def shown(report: Report) -> str:
    """Return a description of the divergences."""
    return "\n".join(line for divergence in report.divergences for line in _lines(divergence))


def _lines(divergence: Divergence) -> Iterator[str]:
    yield f"{divergence.subject}: {divergence.verdict.value}, at checkpoint {divergence.checkpoint}"
    for difference in divergence.differences:
        yield f"  {difference.path}"
        yield f"    - recorded  {difference.recorded!r}"
        yield f"    + ours      {difference.ours!r}"

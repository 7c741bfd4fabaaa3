"""Replays for tests: a recording, the controllers under test, and what they came to.

Guarantees: a replay runs in the test's thread on virtual time, so it is as fast as the machine and the same every time;
its log stays readable until the next replay, or the end of the test; a test's own logging is left as it is.
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
from ctrlmgr.framework.replaying import replayed
from ctrlmgr.recording.builders import CONTROLLERS, ControllerBuilder
from ctrlmgr.recording.clock import ReplayClock
from ctrlmgr.recording.divergence import Divergence
from ctrlmgr.recording.expectation import Ownership
from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.replay import Replay
from ctrlmgr.recording.report import Report
from ctrlmgr.recording.stage import open_replay_log
from ctrlmgr.recording.twice import planned

__all__ = ["ControllerBuilder", "NothingCompared", "Ownership", "Replayer", "shown"]


class NothingCompared(AssertionError):
    """A replay in which nothing could diverge, so that a test of it shows nothing."""


class Replayer:
    """Replays recordings, one after the other; a context manager. The fixture `replay` is one."""

    def __init__(self, folder: Path) -> None:
        """Look for recordings in `folder`, unless their path is absolute."""
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
        """Replay `recording` into an empty log and return what was found.

        `controllers` are names of ours (all of them by default), or what builds controllers by name: under one of our
        names a controller takes its place and is held to what was recorded of it. For others `owns` says which kind
        they write, and as which field manager the recorded one did. The controllers of `apps` run, too. With
        `every_write` each single write is compared, too. Raises `RecordingError`, `SettingsError` for a controller that
        there is not or a `database` that holds events, and `NothingCompared` if the test would have shown nothing: not
        without `must_compare`.
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
        """The log of the last replay: inputs, and what the controllers wrote."""
        if self._log is None:
            raise RuntimeError("nothing has been replayed yet")
        return self._log

    def get(self, resource: str, name: str, namespace: str = "") -> Object | None:
        """Return an object as the last replay left it; `resource` as kubectl writes it, `pods`."""
        return self.log.get(Resource.parse(resource), Key(namespace, name))

    def close(self) -> None:
        """Close the log, if there is one."""
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
            raise NothingCompared(f"{each.controller} owns {each.resource}, and does not run")


def _require_comparison(run: Replay, report: Report) -> None:
    for each in run.unmatched():
        told = f"{each.controller} is to own {each.resource}, of which the field manager {each.manager} wrote none"
        raise NothingCompared(f"{told} in {report.file}")
    if not report.objects_compared and not report.decisions_compared:
        told = "nothing in it was written by what the controllers that run stand for"
        raise NothingCompared(f"nothing of {report.file} was compared: {told}")


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
    """Keep the controllers' hundreds of lines to themselves, unless the test says where they are to go."""
    if structlog.is_configured():
        yield
        return
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        yield
    finally:
        structlog.reset_defaults()


def shown(report: Report) -> str:
    """Say what diverges, for people."""
    return "\n".join(line for divergence in report.divergences for line in _lines(divergence))


def _lines(divergence: Divergence) -> Iterator[str]:
    yield f"{divergence.subject}: {divergence.verdict.value}, at checkpoint {divergence.checkpoint}"
    for difference in divergence.differences:
        yield f"  {difference.path}"
        yield f"    - recorded  {difference.recorded!r}"
        yield f"    + ours      {difference.ours!r}"

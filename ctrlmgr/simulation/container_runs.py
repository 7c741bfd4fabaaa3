"""Computes one run of a container: its end, exit code and termination message.

Guarantees: a run ends when its command exits, a probe fails, the memory is exceeded, or the container is stopped. The
earliest event determines how the run ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.simulation.behaviour import Behaviour
from ctrlmgr.simulation.probe_results import Verdicts
from ctrlmgr.simulation.shell import Line, Run
from ctrlmgr.simulation.simulated_files import Files

_KILLED: Final = 137
_TERMINATED: Final = 143

Container = Mapping[str, Any]


class Span(NamedTuple):
    """One run of a container; if `end` is None, the run has no known end."""

    start: float
    end: float | None
    code: int
    reason: str
    message: str
    run: Run
    verdicts: Verdicts

    def lines(self, until: float) -> list[Line]:
        """Return the lines that the run writes until a given time in the pod's life."""
        last = until if self.end is None else min(until, self.end)
        found = [each._replace(at=self.start + each.at) for each in self.run.lines]
        return [each for each in found if each.at <= last]


class ContainerStop(NamedTuple):
    """The time at which the pod's containers are stopped, and the grace period in seconds."""

    at: float
    grace: float


def turns(span: Span, now: float) -> Iterable[float | None]:
    """Yield the times at which the results of the run's probes can change."""
    moments = [span.start + turn.at for turn in span.verdicts.ready]
    if span.verdicts.started_at is not None:
        moments.append(span.start + span.verdicts.started_at)
    return [each for each in moments if each > now]


def run_of(
    container: Container,
    behaviour: Behaviour,
    run: Run,
    start: float,
    end: ContainerStop | None,
    files: Files,
    verdicts: Verdicts,
) -> Span:
    """Return a run with its end: when its command exits, when a probe kills it, or when the pod is stopped."""
    over = None if run.ends_at is None else start + run.ends_at
    code = run.code
    reason = "OOMKilled" if behaviour.is_oom else ("Completed" if code == 0 else "Error")
    if verdicts.dies_at is not None and (over is None or start + verdicts.dies_at < over):
        over, code, reason = start + verdicts.dies_at, _KILLED, "Error"
    if end is not None and (over is None or over > end.at):
        stop, stop_code = _stops(container, behaviour, run, end)
        stop = max(stop, start)
        if over is None or stop < over:
            over, code = stop, stop_code
            reason = "Completed" if code == 0 else "Error"
    message = _last_words(container, run, code, files.at(over)) if over is not None else ""
    return Span(start, over, code, reason, message, run, verdicts)


def _stops(container: Container, behaviour: Behaviour, run: Run, end: ContainerStop) -> tuple[float, int]:
    """Return the time when a stopped container ends, and its exit code."""
    hook = ((container.get("lifecycle") or {}).get("preStop") or {}).get("sleep") or {}
    takes = float(hook.get("seconds") or 0) + (behaviour.stops_after or 0.0)
    if behaviour.ignores_stop or takes >= end.grace > 0:
        return end.at + end.grace, _KILLED
    return end.at + takes, _TERMINATED if run.ends_at is not None else 0


def _last_words(container: Container, run: Run, code: int, files: Mapping[str, str]) -> str:
    """Return the termination message.

    The message is the content of the message file. If that file is empty and the run failed, the message is the last
    lines of the log.
    """
    text = files.get(container.get("terminationMessagePath") or "/dev/termination-log", "")
    if not text and code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        text = "".join(each.written for each in run.lines[-80:])[-2048:]
    return text[:4096]

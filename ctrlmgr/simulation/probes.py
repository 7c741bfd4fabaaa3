"""Probes: when a container counts as started, as ready, and as dead.

Guarantees: probes happen at their initial delay and every period after it. What is asked over the network answers on a
port that the container declares, and on no other; a command is worked out on the container's files as they are then.
Seconds are counted from the container's start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.simulation.behaviour import Behaviour
from ctrlmgr.simulation.shell import Run, run_command

Container = Mapping[str, Any]


class Turn(NamedTuple):
    """From when on a probe's verdict is this."""

    at: float
    passes: bool


class Verdicts(NamedTuple):
    """What the probes of one run of a container come to."""

    started_at: float | None
    """None: never."""
    ready: tuple[Turn, ...]
    dies_at: float | None
    """When the liveness or startup probe has it killed, None: never."""

    def is_ready(self, seconds: float) -> bool:
        """Say whether the container is ready so long after its start."""
        found = False
        for turn in self.ready:
            if turn.at > seconds:
                break
            found = turn.passes
        return found


def judge(container: Container, run: Run, behaviour: Behaviour, variables: Mapping[str, str]) -> Verdicts:
    """Work out what the probes of a run come to."""
    changes = [each.at for each in run.snapshots]

    def asks(probe: Mapping[str, Any]) -> Callable[[float], bool]:
        return lambda seconds: answers(container, probe, run, seconds, variables)

    started = 0.0
    startup = container.get("startupProbe")
    if startup:
        turns = verdicts(startup, asks(startup), changes, 0.0, initially=False)
        passed = next((turn.at for turn in turns if turn.passes), None)
        if passed is None:
            return Verdicts(None, (), _gives_up(startup))
        started = passed
    dies = None
    liveness = container.get("livenessProbe")
    if liveness:
        turns = verdicts(liveness, asks(liveness), changes, started, initially=True)
        dies = next((turn.at for turn in turns if not turn.passes), None)
    return Verdicts(started, _readiness(container, asks, changes, started, behaviour), dies)


def _readiness(
    container: Container,
    asks: Callable[[Mapping[str, Any]], Callable[[float], bool]],
    changes: Sequence[float],
    started: float,
    behaviour: Behaviour,
) -> tuple[Turn, ...]:
    if behaviour.never_ready:
        return ()
    if behaviour.ready_after is not None:
        return (Turn(max(started, behaviour.ready_after), True),)
    readiness = container.get("readinessProbe")
    if not readiness:
        return (Turn(started, True),)
    return tuple(verdicts(readiness, asks(readiness), changes, started, initially=False))


def _gives_up(probe: Mapping[str, Any]) -> float:
    """Return when a startup probe that never passes has the container killed."""
    period = float(probe.get("periodSeconds") or 10)
    return float(probe.get("initialDelaySeconds") or 0) + period * (int(probe.get("failureThreshold") or 3) - 1)


def verdicts(
    probe: Mapping[str, Any],
    passes: Callable[[float], bool],
    changes: Sequence[float],
    begin: float,
    *,
    initially: bool,
) -> list[Turn]:
    """Return when the verdict of a probe turns; beyond the last of `changes` nothing changes any more."""
    period = float(probe.get("periodSeconds") or 10)
    wanted = int(probe.get("successThreshold") or 1), int(probe.get("failureThreshold") or 3)
    at = max(begin, float(probe.get("initialDelaySeconds") or 0))
    last = max([at, *changes]) + period * (sum(wanted) + 1)
    state, same, counted = initially, initially, 0
    turns = []
    while at <= last:
        result = passes(at)
        counted = counted + 1 if result is same else 1
        same = result
        if result is not state and counted >= (wanted[0] if result else wanted[1]):
            state = result
            turns.append(Turn(at, state))
        at += period
    return turns


def answers(
    container: Container, probe: Mapping[str, Any], run: Run, seconds: float, variables: Mapping[str, str]
) -> bool:
    """Say whether a probe passes so long after the container's start."""
    if "exec" in probe:
        command = (probe["exec"] or {}).get("command") or []
        outcome = run_command(command, dict(run.files_at(seconds)), variables) if command else Run(ends_at=0.0)
        if outcome.unknown:
            return True
        return outcome.code == 0 and outcome.ends_at is not None and outcome.ends_at <= _timeout(probe)
    asked = probe.get("httpGet") or probe.get("tcpSocket") or probe.get("grpc")
    if asked is None:
        return True
    declared = container.get("ports") or ()
    return any(asked.get("port") in (each.get("containerPort"), each.get("name")) for each in declared)


def _timeout(probe: Mapping[str, Any]) -> float:
    return float(probe.get("timeoutSeconds") or 1)

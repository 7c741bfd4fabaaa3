"""Probes: when a container counts as started, as ready, and as dead.

Guarantees: probes happen at their initial delay and every period after it. A probe over the network passes,
unless the container runs a server whose ports are known (`servers`). A probe of a command is worked out on the
container's files as they are at that moment; a command that is not known passes. Seconds are counted from the
container's start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.simulation.behaviour import Behaviour
from ctrlmgr.simulation.network import OPEN, Network
from ctrlmgr.simulation.programs import image_name, words_of
from ctrlmgr.simulation.servers import Server, server_of
from ctrlmgr.simulation.shell import Run, run_command
from ctrlmgr.simulation.volumes import Files

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


def judge(
    container: Container,
    behaviour: Behaviour,
    files: Files,
    variables: Mapping[str, str],
    network: Network = OPEN,
) -> Verdicts:
    """Work out what the probes of a run come to; `files` and `network` are those that the run sees."""
    server = server_of(image_name(container.get("image", "")), words_of(container))
    changes = [each - files.start for each in files.changes()]
    if (change := network.next_change(files.start)) is not None:
        changes.append(change - files.start)
    if server is not None and server.sickens_at is not None:
        changes.append(server.sickens_at)

    def asks(probe: Mapping[str, Any]) -> Callable[[float], bool | None]:
        return lambda seconds: answers(container, server, probe, files, seconds, variables, network)

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
    asks: Callable[[Mapping[str, Any]], Callable[[float], bool | None]],
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
    passes: Callable[[float], bool | None],
    changes: Sequence[float],
    begin: float,
    *,
    initially: bool,
) -> list[Turn]:
    """Return when the verdict of a probe turns; beyond the last of `changes` nothing changes any more.

    A probe that cannot be made (None) counts for nothing (`pkg/kubelet/prober/worker.go`).
    """
    period = float(probe.get("periodSeconds") or 10)
    wanted = int(probe.get("successThreshold") or 1), int(probe.get("failureThreshold") or 3)
    at = max(begin, float(probe.get("initialDelaySeconds") or 0))
    last = max([at, *changes]) + period * (sum(wanted) + 1)
    state, same, counted = initially, initially, 0
    turns = []
    while at <= last:
        result = passes(at)
        at += period
        if result is None:
            continue
        counted = counted + 1 if result is same else 1
        same = result
        if result is not state and counted >= (wanted[0] if result else wanted[1]):
            state = result
            turns.append(Turn(at - period, state))
    return turns


def answers(
    container: Container,
    server: Server | None,
    probe: Mapping[str, Any],
    files: Files,
    seconds: float,
    variables: Mapping[str, str],
    network: Network,
) -> bool | None:
    """Say whether a probe passes so long after the container's start; None: it cannot be made."""
    if "exec" in probe:
        command = (probe["exec"] or {}).get("command") or []
        seen = files.copied(files.start + seconds)
        outcome = run_command(command, seen, variables, None, network) if command else Run(ends_at=0.0)
        if outcome.unknown:
            return True
        return outcome.code == 0 and outcome.ends_at is not None and outcome.ends_at <= _timeout(probe)
    asked = probe.get("httpGet") or probe.get("tcpSocket") or probe.get("grpc")
    if asked is None:
        return True
    port = _port(container, asked.get("port"))
    if port is None:
        return None
    path = (asked.get("path") or "/") if "httpGet" in probe else ""
    return server is None or server.answers(port, path, seconds)


def _port(container: Container, port: Any) -> int | None:
    """Return the number of a port; a name has to be that of a port that the container declares."""
    if isinstance(port, int):
        return port
    found = (each["containerPort"] for each in container.get("ports") or () if each.get("name") == port)
    return next(found, None) if not str(port).isdecimal() else int(port)


def _timeout(probe: Mapping[str, Any]) -> float:
    return float(probe.get("timeoutSeconds") or 1)

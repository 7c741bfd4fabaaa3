"""Computes from a container's probes when the container is started and ready, and when a probe kills it.

Guarantees: a probe runs after its initial delay, and then once per period. A network probe fails only if the container
runs a known server and the port is wrong (`agnhost_servers`). The result of an exec probe is computed from the
container's files at the time of the probe. A probe with an unknown command passes. Seconds count from the start of the
container's run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.simulation.agnhost_servers import Server, server_of
from ctrlmgr.simulation.behaviour import Behaviour
from ctrlmgr.simulation.container_programs import image_name, words_of
from ctrlmgr.simulation.shell import Run, run_command
from ctrlmgr.simulation.simulated_files import Files
from ctrlmgr.simulation.simulated_network import OPEN, Network

Container = Mapping[str, Any]


class VerdictChange(NamedTuple):
    """A change of the result of a probe."""

    at: float
    passes: bool


class Verdicts(NamedTuple):
    """The results of all probes in one run of a container."""

    started_at: float | None
    """The time at which the startup probe passes; None if the startup probe never passes."""
    ready: tuple[VerdictChange, ...]
    dies_at: float | None
    """The time at which the liveness probe or the startup probe kills the container; None if no probe kills it."""

    def is_ready(self, seconds: float) -> bool:
        """Return whether the container is ready `seconds` after its start."""
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
    """Compute the results of all probes of a run; `files` and `network` are the files and the network of the run."""
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
) -> tuple[VerdictChange, ...]:
    if behaviour.never_ready:
        return ()
    if behaviour.ready_after is not None:
        return (VerdictChange(max(started, behaviour.ready_after), True),)
    readiness = container.get("readinessProbe")
    if not readiness:
        return (VerdictChange(started, True),)
    return tuple(verdicts(readiness, asks(readiness), changes, started, initially=False))


def _gives_up(probe: Mapping[str, Any]) -> float:
    """Return the time at which the container is killed because its startup probe never passes."""
    period = float(probe.get("periodSeconds") or 10)
    return float(probe.get("initialDelaySeconds") or 0) + period * (int(probe.get("failureThreshold") or 3) - 1)


def verdicts(
    probe: Mapping[str, Any],
    passes: Callable[[float], bool | None],
    changes: Sequence[float],
    begin: float,
    *,
    initially: bool,
) -> list[VerdictChange]:
    """Return the changes of a probe's result.

    After the last of `changes`, the result of the probe does not change any more. An execution of the probe without a
    result (None) is ignored (`pkg/kubelet/prober/worker.go`).
    """
    period = float(probe.get("periodSeconds") or 10)
    thresholds = int(probe.get("successThreshold") or 1), int(probe.get("failureThreshold") or 3)
    at = max(begin, float(probe.get("initialDelaySeconds") or 0))
    last = max([at, *changes]) + period * (sum(thresholds) + 1)
    state, same, counted = initially, initially, 0
    turns = []
    while at <= last:
        result = passes(at)
        at += period
        if result is None:
            continue
        counted = counted + 1 if result is same else 1
        same = result
        if result is not state and counted >= (thresholds[0] if result else thresholds[1]):
            state = result
            turns.append(VerdictChange(at - period, state))
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
    """Return whether a probe passes `seconds` after the container's start; None if the probe cannot be run."""
    if "exec" in probe:
        command = (probe["exec"] or {}).get("command") or []
        seen = files.copied(files.start + seconds)
        outcome = run_command(command, seen, variables, None, network) if command else Run(ends_at=0.0)
        if outcome.unknown:
            return True
        return outcome.code == 0 and outcome.ends_at is not None and outcome.ends_at <= _timeout(probe)
    handler = probe.get("httpGet") or probe.get("tcpSocket") or probe.get("grpc")
    if handler is None:
        return True
    port = _port(container, handler.get("port"))
    if port is None:
        return None
    path = (handler.get("path") or "/") if "httpGet" in probe else ""
    return server is None or server.answers(port, path, seconds)


def _port(container: Container, port: Any) -> int | None:
    """Return the number of a port; if the port is given by name, the container must declare a port with this name."""
    if isinstance(port, int):
        return port
    found = (each["containerPort"] for each in container.get("ports") or () if each.get("name") == port)
    return next(found, None) if not str(port).isdecimal() else int(port)


def _timeout(probe: Mapping[str, Any]) -> float:
    return float(probe.get("timeoutSeconds") or 1)

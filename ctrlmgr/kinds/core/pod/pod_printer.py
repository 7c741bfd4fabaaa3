"""The table row of a pod in `kubectl get pods`, with its containers' states (`pkg/printers/internalversion`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.table_printer import NONE, Fields, RowCondition, age, joined, printer

_UNREACHABLE = "NodeLost"


def _state(status: Any, state: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = at(status, "state", state)
    return found


def _is_restartable(container: Any) -> bool:
    return bool(at(container, "restartPolicy") == "Always")


def _terminated(terminated: dict[str, Any]) -> str:
    """Return the reason why a container terminated; if no reason is given, return its signal or exit code."""
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


class _Counts:
    """The number of ready containers and the number of restarts, counted while the container statuses are read."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.ready = 0
        self.restarts = 0
        self.restarted_at: list[str] = []

    def restarted(self, status: Any) -> None:
        self.restarts += status.get("restartCount", 0)
        if finished := at(status, "lastState", "terminated", "finishedAt"):
            self.restarted_at.append(finished)


def _init_reason(pod: Fields, counts: _Counts) -> str | None:
    """Return the pending step of the pod's initialization; None if the initialization is complete."""
    listed = {each.get("name"): each for each in at(pod, "spec", "initContainers") or ()}
    statuses = at(pod, "status", "initContainerStatuses") or []
    for index, status in enumerate(statuses):
        counts.restarted(status)
        restartable = _is_restartable(listed.get(status.get("name")))
        terminated, waiting = _state(status, "terminated"), _state(status, "waiting")
        if terminated is not None and terminated.get("exitCode", 0) == 0:
            continue
        if restartable and status.get("started"):
            counts.ready += bool(status.get("ready"))
            continue
        if terminated is not None:
            return f"Init:{_terminated(terminated)}"
        if waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(listed)}"
    return None


def _main_reason(pod: Fields, reason: str, counts: _Counts) -> str:
    running = False
    for status in reversed(at(pod, "status", "containerStatuses") or []):
        counts.restarted(status)
        waiting, terminated = _state(status, "waiting"), _state(status, "terminated")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = _terminated(terminated)
        elif status.get("ready") and _state(status, "running") is not None:
            running = True
            counts.ready += 1
    if reason == "Completed" and running:
        return "Running" if _has_condition(pod, "Ready") else "NotReady"
    return reason


def _has_condition(pod: Fields, type_: str) -> bool:
    return any(
        each.get("type") == type_ and each.get("status") == "True" for each in at(pod, "status", "conditions") or ()
    )


def _reason(pod: Fields, counts: _Counts) -> str:
    reason = at(pod, "status", "reason") or at(pod, "status", "phase") or ""
    if any(each.get("reason") == "SchedulingGated" for each in at(pod, "status", "conditions") or ()):
        reason = "SchedulingGated"
    initialising = _init_reason(pod, counts)
    if initialising is None or _has_condition(pod, "Initialized"):
        reason = _main_reason(pod, reason, counts)
    else:
        counts.restarts = sum(each.get("restartCount", 0) for each in at(pod, "status", "initContainerStatuses") or ())
        reason = initialising
    if at(pod, "metadata", "deletionTimestamp"):
        if at(pod, "status", "reason") == _UNREACHABLE:
            return "Unknown"
        if at(pod, "status", "phase") not in ("Failed", "Succeeded"):
            return "Terminating"
    return str(reason)


def _readiness_gates(pod: Fields) -> str:
    gates = at(pod, "spec", "readinessGates") or []
    if not gates:
        return NONE
    met = sum(_has_condition(pod, gate.get("conditionType", "")) for gate in gates)
    return f"{met}/{len(gates)}"


def _row(pod: Fields, ages: Ages) -> Iterator[Any]:
    sidecars = [each for each in at(pod, "spec", "initContainers") or () if _is_restartable(each)]
    counts = _Counts(len(at(pod, "spec", "containers") or ()) + len(sidecars))
    reason = _reason(pod, counts)
    restarts = str(counts.restarts)
    if counts.restarts and counts.restarted_at:
        restarts += f" ({ages.since(max(counts.restarted_at))} ago)"
    yield f"{counts.ready}/{counts.total}"
    yield reason
    yield restarts
    yield age(pod, ages)
    yield joined(_addresses(pod)[:1])
    yield at(pod, "spec", "nodeName") or NONE
    yield at(pod, "status", "nominatedNodeName") or NONE
    yield _readiness_gates(pod)


def _addresses(pod: Fields) -> list[str]:
    listed: Iterable[Any] = at(pod, "status", "podIPs") or ()
    addresses = [each["ip"] for each in listed if each.get("ip")]
    single = at(pod, "status", "podIP")
    return addresses or ([single] if single else [])


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Phase(msgspec.Struct):
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Phase).decode
_ENDED = {
    "Succeeded": (RowCondition("Completed", "True", "Succeeded", "The pod has completed successfully."),),
    "Failed": (RowCondition("Completed", "True", "Failed", "The pod failed."),),
}


def _conditions(pod: Object) -> Sequence[RowCondition]:
    return _ENDED.get(_decode(pod.body).status.phase, ())


PODS = printer("Ready|Status|Restarts|Age|+IP|+Node|+Nominated Node|+Readiness Gates", _row)._replace(
    conditions=_conditions
)

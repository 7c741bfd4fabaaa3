"""Computes the status of a pod on a simulated node, as its kubelet would report it (`desired_status`).

Guarantees: the order, reasons and messages of conditions are the same as in a kubelet's status. A condition keeps its
last transition time while its status is unchanged. Conditions that other clients write (PodScheduled, readiness gates,
DisruptionTarget) are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.simulation.container_programs import image_name
from ctrlmgr.simulation.container_runs import ContainerStop, Span
from ctrlmgr.simulation.container_state import Memory, digest
from ctrlmgr.simulation.pod_lifecycle import ContainerLife, Life, is_sidecar, live
from ctrlmgr.simulation.simulated_files import Shared
from ctrlmgr.simulation.simulated_network import OPEN, Network

RUNNING: Final = "Running"
PENDING: Final = "Pending"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
_NOT_EPHEMERAL: Final = ("started", "resources", "allocatedResources")
_ORDER: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class Place(NamedTuple):
    """The addresses of a pod and of its node."""

    host_ips: tuple[str, ...]
    pod_ips: tuple[str, ...]


class Desired(NamedTuple):
    """A pod status, the seconds until its next change (None if it stays), and whether all containers have stopped."""

    status: dict[str, Any]
    changes_in: float | None
    stopped: bool
    life: Life


def desired_status(
    pod: Mapping[str, Any],
    script_of: Callable[[Mapping[str, Any]], Any],
    place: Place,
    now: float,
    end: ContainerStop | None,
    clock: Callable[[float], str],
    shared: Shared | None = None,
    network: Network = OPEN,
) -> Desired:
    """Return the status of a pod, `now` seconds after its node accepted the pod.

    The function `clock` formats a number of seconds since the acceptance as a timestamp. The argument `shared` contains
    the changes that other pods made in shared volumes. The argument `network` simulates the pod's connections.
    """
    life = live(pod, script_of, now, end, shared, network)
    before = pod.get("status") or {}
    phase = _phase(life, now)
    statuses = {
        "initContainerStatuses": [_container(pod, each, now, clock) for each in life.init],
        "containerStatuses": [_container(pod, each, now, clock) for each in life.main],
        "ephemeralContainerStatuses": [_ephemeral(_container(pod, each, now, clock)) for each in life.ephemeral],
    }
    generation = pod["metadata"].get("generation", 0)
    new: dict[str, Any] = {
        "observedGeneration": generation,
        "phase": phase,
        "conditions": _conditions(pod, life, phase, now, clock),
        **({"message": life.message, "reason": life.reason} if life.reason and phase == FAILED else {}),
        **{key: before[key] for key in ("nominatedNodeName", "resize", "resourceClaimStatuses") if key in before},
        **_addresses(place),
        "startTime": clock(0.0),
        **{key: each for key, each in statuses.items() if each},
        **_whole(pod, life),
        "qosClass": before.get("qosClass", "BestEffort"),
    }
    changes = None if life.next_change is None else max(life.next_change - now, 0.0)
    return Desired(new, changes, life.has_stopped(now), life)


def _whole(pod: Mapping[str, Any], life: Life) -> dict[str, Any]:
    """Return the resources that are allocated at pod level; empty if the pod does not run."""
    resources = pod["spec"].get("resources") or {}
    if not resources or not any(each.spans for each in life.main):
        return {}
    given = {field: each for field, each in resources.items() if field in ("limits", "requests")}
    allocated = {"allocatedResources": given["requests"]} if given.get("requests") else {}
    return {**allocated, "resources": given}


def _addresses(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if place.host_ips:
        found |= {"hostIP": place.host_ips[0], "hostIPs": [{"ip": each} for each in place.host_ips]}
    if place.pod_ips:
        found |= {"podIP": place.pod_ips[0], "podIPs": [{"ip": each} for each in place.pod_ips]}
    return found


def _phase(life: Life, now: float) -> str:
    if life.ended_at is not None and life.ended_at <= now and life.has_stopped(now):
        if life.reason or not life.main or not life.is_initialized:
            return FAILED
        codes = [each.ended(now)[-1].code for each in life.main if each.ended(now)]
        return SUCCEEDED if len(codes) == len(life.main) and not any(codes) else FAILED
    if not life.is_initialized or any(not each.has_run for each in life.main):
        return PENDING
    return RUNNING


# The following functions compute the statuses of containers.


def _container(
    pod: Mapping[str, Any], life: ContainerLife, now: float, clock: Callable[[float], str]
) -> dict[str, Any]:
    if life.is_kept:
        return dict(life.recorded)
    meta, image = pod["metadata"], life.container.get("image", "")
    running, ended = life.running(now), life.ended(now)
    memory = life.memory or Memory("", 0.0)
    number = max(len(life.spans) - 1, 0)

    def identify(run: int) -> str:
        last_memory = memory._replace(current=life.spans[run].start)
        restarts = str(memory.restarts + run)
        return last_memory.identify(
            digest(meta.get("namespace", ""), meta["name"], meta.get("uid", ""), life.name, restarts)
        )

    state, last = _states(life, running, ended, identify, clock)
    completed = "terminated" in state and state["terminated"]["exitCode"] == 0
    found: dict[str, Any] = {
        "name": life.name,
        "state": state,
        "lastState": last,
        "ready": life.is_ready(now) if running or not _is_init(pod, life) else completed,
        "restartCount": memory.restarts + number if life.spans else life.recorded.get("restartCount", 0),
        "image": image,
        "imageID": f"{image_name(image)}@sha256:{digest(image)}" if life.pulled else "",
    }
    if life.has_run:
        found["containerID"] = identify(number) if life.spans else life.recorded["containerID"]
    found["started"] = life.is_started(now)
    resources = life.container.get("resources") or {}
    if life.spans and resources.get("requests"):
        found["allocatedResources"] = resources["requests"]
    if life.spans:  # The field is set even if it is empty, because it says that the node can resize pods.
        found["resources"] = {key: each for key, each in resources.items() if key in ("limits", "requests")}
    return found


def _ephemeral(status: dict[str, Any]) -> dict[str, Any]:
    """Return the status of an ephemeral container, which has no probes and no resources, and is never ready."""
    kept = {field: each for field, each in status.items() if field not in _NOT_EPHEMERAL}
    return {**kept, "ready": False}


def _is_init(pod: Mapping[str, Any], life: ContainerLife) -> bool:
    inits = pod["spec"].get("initContainers") or ()
    return not is_sidecar(life.container) and any(each["name"] == life.name for each in inits)


def _states(
    life: ContainerLife,
    running: Span | None,
    ended: Sequence[Span],
    identify: Callable[[int], str],
    clock: Callable[[float], str],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields `state` and `lastState` of a container's status."""
    terminated = [_before(life, clock), *(_terminated(each, identify(at), clock) for at, each in enumerate(ended))]
    if running is not None:
        return {"running": {"startedAt": clock(running.start)}}, terminated[-1]
    if ended and (life.is_done or not life.waits_for):
        return terminated[-1], terminated[-2]
    waiting = {"reason": life.waits_for, **({"message": life.message} if life.message else {})}
    return {"waiting": waiting}, terminated[-1]


def _before(life: ContainerLife, clock: Callable[[float], str]) -> dict[str, Any]:
    """Return the end of the last run before the runs that were computed."""
    if life.killed_at is None:
        return dict(life.recorded.get("lastState") or {})
    fields = {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": life.recorded["state"]["running"]["startedAt"],
        "finishedAt": clock(life.killed_at),
        "containerID": life.recorded["containerID"],
    }
    return {"terminated": fields}


def _terminated(span: Span, identity: str, clock: Callable[[float], str]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "exitCode": span.code,
        "reason": span.reason,
        "startedAt": clock(span.start),
        "finishedAt": clock(span.end or span.start),
        "containerID": identity,
    }
    if span.message:
        fields["message"] = span.message
    return {"terminated": fields}


# The following functions compute conditions.


def _conditions(
    pod: Mapping[str, Any], life: Life, phase: str, now: float, clock: Callable[[float], str]
) -> list[dict[str, Any]]:
    before = {each["type"]: each for each in (pod.get("status") or {}).get("conditions") or ()}
    found = {
        "PodReadyToStartContainers": ("True" if _has_sandbox(life, now) else "False", "", ""),
        "Initialized": _initialized(life, phase, now),
        "Ready": _ready(pod, life, phase, now, before),
        "ContainersReady": _containers_ready(life, phase, now),
        "PodScheduled": ("True", "", ""),
    }
    generation = pod["metadata"].get("generation", 0)
    conditions = [_condition(type_, *found[type_], before, generation, clock(now)) for type_ in _ORDER]
    return [*(each for type_, each in before.items() if type_ not in _ORDER), *conditions]


def _condition(
    type_: str, status: str, reason: str, message: str, before: Mapping[str, Any], generation: int, at: str
) -> dict[str, Any]:
    old = before.get(type_)
    since = old.get("lastTransitionTime") if old is not None and old.get("status") == status else None
    condition = {"type": type_, "observedGeneration": generation, "status": status, "lastProbeTime": None}
    condition["lastTransitionTime"] = since or at
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def _has_sandbox(life: Life, now: float) -> bool:
    """Return whether the pod has a network, which exists from the first container's start until all containers end."""
    begun = any(each.pulled or each.spans for each in (*life.init, *life.main))
    return begun and (life.ended_at is None or life.ended_at > now or not life.has_stopped(now))


def _initialized(life: Life, phase: str, now: float) -> tuple[str, str, str]:
    if life.is_initialized:
        return "True", "PodCompleted" if phase == SUCCEEDED else "", ""
    lacking = [each.name for each in life.init if not _is_through(each, now)]
    return "False", "ContainersNotInitialized", f"containers with incomplete status: {_names(lacking)}"


def _is_through(life: ContainerLife, now: float) -> bool:
    if is_sidecar(life.container):
        return life.is_started(now)
    ended = life.ended(now)
    return bool(ended) and ended[-1].code == 0


def _containers_ready(life: Life, phase: str, now: float) -> tuple[str, str, str]:
    if phase == SUCCEEDED:
        return "False", "PodCompleted", ""
    if phase == FAILED:
        return "False", "PodFailed", ""
    sidecars = [each for each in life.init if is_sidecar(each.container)]
    lacking = [each.name for each in (*sidecars, *life.main) if not each.is_ready(now)]
    if lacking:
        return "False", "ContainersNotReady", f"containers with unready status: {_names(lacking)}"
    return "True", "", ""


def _ready(
    pod: Mapping[str, Any], life: Life, phase: str, now: float, before: Mapping[str, Any]
) -> tuple[str, str, str]:
    status, reason, message = _containers_ready(life, phase, now)
    if status == "False":
        return status, reason, message
    problems = []
    for gate in pod["spec"].get("readinessGates") or ():
        type_ = gate["conditionType"]
        if type_ not in before:
            problems.append(f'corresponding condition of pod readiness gate "{type_}" does not exist.')
        elif before[type_].get("status") != "True":
            status_before = before[type_].get("status")
            problems.append(f'the status of pod readiness gate "{type_}" is not "True", but {status_before}')
    if problems:
        return "False", "ReadinessGatesNotReady", ", ".join(problems)
    return "True", "", ""


def _names(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"


def rejected(pod: Mapping[str, Any], reason: str, message: str, at: str) -> dict[str, Any]:
    """Return the status of a pod that its node has rejected."""
    before = pod.get("status") or {}
    kept = {key: before[key] for key in ("conditions", "qosClass") if key in before}
    return {
        "observedGeneration": pod["metadata"].get("generation", 0),
        "phase": FAILED,
        **kept,
        "message": f"Pod was rejected: {message}",
        "reason": reason,
        "startTime": at,
    }

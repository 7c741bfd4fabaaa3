"""Computes the Events that a kubelet records when a pod's status changes, based on the old and new status only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.simulation.pod_lifecycle import Life

_NORMAL: Final = "Normal"
_WARNING: Final = "Warning"
_PLACES: Final = (
    ("initContainerStatuses", "initContainers"),
    ("containerStatuses", "containers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
)


class KubeletEvent(NamedTuple):
    """An Event about a container of a pod, or about the pod itself."""

    type: str
    reason: str
    message: str
    field_path: str = ""


def kubelet_events(pod: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KubeletEvent]:
    """Yield the Events that a kubelet records when a pod's status changes to `new`."""
    old = pod.get("status") or {}
    for field, place in _PLACES:
        before = {each["name"]: each for each in old.get(field) or ()}
        for status in new.get(field) or ():
            path = f"spec.{place}{{{status['name']}}}"
            for type_, reason, message in _container(pod, before.get(status["name"]) or {}, status):
                yield KubeletEvent(type_, reason, message, path)


def _container(
    pod: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    image = after["image"]
    if after["imageID"] and not before.get("imageID"):
        yield _NORMAL, "Pulled", f'Container image "{image}" already present on machine'
    if after["imageID"] and before.get("containerID") and after["image"] != before["image"]:
        yield _NORMAL, "Killing", f"Container {after['name']} definition changed, will be restarted"
    if "containerID" in after and _start(after) != _start(before):
        yield _NORMAL, "Created", "Container created"
        yield _NORMAL, "Started", "Container started"
    waits = (after["state"].get("waiting") or {}).get("reason", "")
    if waits == ((before.get("state") or {}).get("waiting") or {}).get("reason", ""):
        return
    if waits == "CrashLoopBackOff":
        meta = pod["metadata"]
        where = f"{meta['name']}_{meta.get('namespace', '')}({meta.get('uid', '')})"
        yield _WARNING, "BackOff", f"Back-off restarting failed container {after['name']} in pod {where}"
    elif waits in ("ErrImagePull", "ErrImageNeverPull"):
        message = after["state"]["waiting"].get("message", "")
        failed = f'Failed to pull image "{image}": {message}' if waits == "ErrImagePull" else message
        yield _WARNING, "Failed", failed
        yield _WARNING, "Failed", f"Error: {waits}"
    elif waits == "ImagePullBackOff":
        yield _NORMAL, "BackOff", f'Back-off pulling image "{image}"'


def _start(status: Mapping[str, Any]) -> tuple[bool, int]:
    """Return a value that differs between two starts of a container."""
    return "containerID" in status, status.get("restartCount", 0)


def unknown_commands(life: Life) -> Iterator[KubeletEvent]:
    """Yield an Event for each container whose command is unknown to the simulation."""
    for each in life.containers:
        if len(each.spans) == 1 and each.spans[0].run.unknown:
            run = each.spans[0].run
            taken = "run for ever" if run.ends_at is None else "end"
            message = f"the simulation does not know the command {run.unknown!r} and takes it to {taken}"
            yield KubeletEvent(_WARNING, "SimulatedCommand", message)

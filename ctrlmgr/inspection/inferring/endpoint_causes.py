"""Infers the causes of changes to Endpoints and EndpointSlices: steps of pods or Services that explain the differences.

Each endpoint represents a pod. The state of an endpoint follows from its pod and its Service: whether the pod is
selected, its addresses, and whether it is ready or terminating. The cause of a difference is the newest step of the pod
or Service that changed the endpoint to the new state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from typing import Any, Final

from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES, Key
from ctrlmgr.api.unstructured import at
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.inferring.inference import Inference, inferred
from ctrlmgr.inspection.inferring.object_history import PastSteps, Step, newest

_TRIGGERED: Final = "endpoints.kubernetes.io/last-change-trigger-time"
_MIRROR: Final = "endpointslicemirroring-controller.k8s.io"
_KEEPER: Final = "endpointslice-controller.k8s.io"

Meaning = tuple[bool, bool, bool]
"""The state of a pod's endpoint: whether it is ready, serving, and terminating. Endpoints objects contain only `ready`.
"""


def infer_endpoints(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of a change to an Endpoints object."""
    services = past.history(SERVICES, step.key, until=step.revision)
    service = newest(services)
    if step.type is EventType.DELETED:
        return _of_deleted(step, service, "kube-apiserver")
    if service is None or not at(service.after, "spec", "selector"):
        return None
    was, now = (_told_by_endpoints(each) for each in (step.before, step.after))
    found = [*_flips(step, services, was, now, past)]
    if not found:
        found = [*_service_or_own(step, services, past.history(ENDPOINTS, step.key, until=step.revision))]
    explanation = "the control plane writes the Endpoints of a Service with a selector"
    return inferred("endpoints-controller", explanation, [*found, *_triggering(step, found, services, past)])


def infer_slices(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of a change to an EndpointSlice."""
    labels: Mapping[str, str] = at(step.fields, "metadata", "labels") or {}
    key = Key(step.key.namespace, labels.get(SERVICE_NAME, ""))
    keeper = labels.get(MANAGED_BY)
    if keeper == _MIRROR:
        origin = newest(past.history(ENDPOINTS, key, until=step.revision))
        explanation = f"the slice is managed by {_MIRROR}"
        return inferred("endpointslice-mirroring-controller", explanation, [(origin, "the mirrored Endpoints")])
    if keeper != _KEEPER or not key.name:
        return None
    services = past.history(SERVICES, key, until=step.revision)
    service = newest(services)
    if step.type is EventType.DELETED and (found := _of_deleted(step, service, "garbage-collector-controller")):
        return found
    if service is None:
        return None
    shown = _shown_elsewhere(step, key, past)
    was, now = (_told_by_slice(each) for each in (step.before, step.after))
    if step.type is EventType.DELETED:
        was = _told_by_slice(step.fields)
    moved = {name for name in was.keys() | now.keys() if name in shown and now.get(name) in (None, shown[name])}
    was, now = ({name: each for name, each in slices.items() if name not in moved} for slices in (was, now))
    causes = [*_flips(step, services, was, now, past)]
    if not causes:
        own = past.history(ENDPOINT_SLICES, step.key, until=step.revision)
        causes = [*_service_or_own(step, services, own, moved=bool(moved))]
    return inferred("endpointslice-controller", f"the slice is managed by {_KEEPER}", causes)


def _of_deleted(step: Step, service: Step | None, controller: str) -> Inference | None:
    """Infer the deletion of a Service as the cause of the deletion of its Endpoints or EndpointSlice."""
    if service is None or service.type is not EventType.DELETED:
        return None
    return inferred(controller, "it is deleted with its Service", [(service, "the Service was deleted")])


def _flips(
    step: Step, services: Sequence[Step], was: Mapping[str, Meaning], now: Mapping[str, Meaning], past: PastSteps
) -> Iterator[tuple[Step | None, str]]:
    """Yield the cause of each difference in the endpoint of a pod."""
    is_short = step.resource == ENDPOINTS
    for name in sorted(was.keys() | now.keys()):
        before, after = was.get(name), now.get(name)
        if before == after:
            continue
        pods = past.history(PODS, Key(step.key.namespace, name), until=step.revision)
        flip = _flip(pods, services, after, is_short=is_short)
        if flip is not None:
            yield flip, _explanation(flip, name, before, after)


def _flip(pods: Sequence[Step], services: Sequence[Step], after: Meaning | None, *, is_short: bool) -> Step | None:
    """Return the newest step that changed a pod's endpoint from another state to the new state."""
    pod: Mapping[str, Any] = {}
    service: Mapping[str, Any] = {}
    meaning: Meaning | None = None
    found = None
    for each in merge(pods, services, key=lambda step: step.revision):
        if each.resource == PODS:
            pod = each.after
        else:
            service = each.after
        became = _meaning(pod, service, is_short=is_short)
        if became != meaning and became == after:
            found = each
        meaning = became
    return found


def _meaning(pod: Mapping[str, Any], service: Mapping[str, Any], *, is_short: bool) -> Meaning | None:
    """Return the state of a pod's endpoint in a Service; None if the Service has no endpoint for the pod."""
    spec = at(service, "spec") or {}
    selector = spec.get("selector")
    labels = at(pod, "metadata", "labels") or {}
    if not pod or not selector or any(labels.get(name) != value for name, value in selector.items()):
        return None
    if at(pod, "status", "phase") in ("Succeeded", "Failed") or not at(pod, "status", "podIP"):
        return None
    publishes = bool(spec.get("publishNotReadyAddresses"))
    is_terminating = at(pod, "metadata", "deletionTimestamp") is not None
    is_serving = any(
        each.get("type") == "Ready" and each.get("status") == "True" for each in at(pod, "status", "conditions") or ()
    )
    if is_short:
        ready = publishes or is_serving
        return None if is_terminating and not publishes else (ready, ready, False)
    return (publishes or (is_serving and not is_terminating), is_serving, is_terminating)


def _told_by_endpoints(fields: Mapping[str, Any]) -> dict[str, Meaning]:
    found: dict[str, Meaning] = {}
    for subset in fields.get("subsets") or ():
        for field, is_ready in (("notReadyAddresses", False), ("addresses", True)):
            for each in subset.get(field) or ():
                if at(each, "targetRef", "kind") == "Pod":
                    found[each["targetRef"].get("name", "")] = (is_ready, is_ready, False)
    return found


def _told_by_slice(fields: Mapping[str, Any]) -> dict[str, Meaning]:
    found: dict[str, Meaning] = {}
    for each in fields.get("endpoints") or ():
        if at(each, "targetRef", "kind") == "Pod":
            conditions = each.get("conditions") or {}
            ready = bool(conditions.get("ready", True))
            meant = (ready, bool(conditions.get("serving", ready)), bool(conditions.get("terminating")))
            found[each["targetRef"].get("name", "")] = meant
    return found


def _shown_elsewhere(step: Step, service: Key, past: PastSteps) -> dict[str, Meaning]:
    """Return the endpoints in the other EndpointSlices of a Service just before a step."""
    last = {each.key: each for each in past.histories(ENDPOINT_SLICES, step.key.namespace, until=step.revision)}
    found: dict[str, Meaning] = {}
    for each in last.values():
        if each.key != step.key and at(each.after, "metadata", "labels", SERVICE_NAME) == service.name:
            found |= _told_by_slice(each.after)
    return found


def _service_or_own(
    step: Step, services: Sequence[Step], own: Sequence[Step], *, moved: bool = False
) -> Iterator[tuple[Step | None, str]]:
    """Yield the cause of a change of an object in which no endpoint differs."""
    last = newest(own)
    changed = newest(services, _concerns)
    if last is not None and last.type is EventType.DELETED and (changed is None or last.revision > changed.revision):
        yield last, "it was deleted before, and is created again"
    elif changed is not None and (step.type is EventType.ADDED or moved or _is_unanswered(changed, own)):
        what = "was created" if changed.previous is None else "changed"
        yield changed, f"no pod explains it, and the Service {what} before"


def _concerns(service: Step) -> bool:
    """Return whether a step of a Service changes fields on which its endpoints depend."""
    return any(service.changes(*path) for path in (("spec",), ("metadata", "labels"), ("metadata", "annotations")))


def _is_unanswered(changed: Step, own: Sequence[Step]) -> bool:
    last = newest(own)
    return last is None or changed.revision > last.revision


def _triggering(
    step: Step, found: Sequence[tuple[Step | None, str]], services: Sequence[Step], past: PastSteps
) -> Iterator[tuple[Step | None, str]]:
    """If no other cause was found, yield the step of the pod whose timestamp equals the Endpoints' trigger time."""
    moment = at(step.after, "metadata", "annotations", _TRIGGERED)
    if found or not moment or moment == at(step.before, "metadata", "annotations", _TRIGGERED):
        return
    pods = past.histories(PODS, step.key.namespace, until=step.revision)
    service = at(services[-1].after, "spec", "selector") or {}
    for pod in pods:
        labels = at(pod.fields, "metadata", "labels") or {}
        if service.items() <= labels.items() and any(
            each.get("lastTransitionTime") == moment for each in at(pod.after, "status", "conditions") or ()
        ):
            yield pod, f"its readiness changed at {moment}, which the Endpoints contain as trigger time"
            return


def _explanation(flip: Step, pod: str, before: Meaning | None, after: Meaning | None) -> str:
    """Return a description of how a step explains the difference in an endpoint."""
    shown = f"{pod}: {_word(before)} → {_word(after)}"
    if flip.resource == SERVICES:
        return (
            f"explains {shown}: the Service changed" if flip.previous else f"explains {shown}: the Service was created"
        )
    return f"explains {shown}{_readiness(flip)}"


def _readiness(pod: Step) -> str:
    was, now = (_ready(each) for each in (pod.before, pod.after))
    if pod.type is EventType.DELETED:
        return ": the pod was deleted"
    if pod.changes("metadata", "deletionTimestamp"):
        return ": the pod's deletion was requested"
    if pod.changes("metadata", "labels"):
        return ": the pod's labels changed"
    return f": Ready {was}→{now}" if was != now else ""


def _ready(fields: Mapping[str, Any]) -> str:
    conditions = at(fields, "status", "conditions") or ()
    return next((each.get("status", "") for each in conditions if each.get("type") == "Ready"), "none")


def _word(meaning: Meaning | None) -> str:
    if meaning is None:
        return "absent"
    ready, serving, terminating = meaning
    if terminating:
        return "terminating, serving" if serving else "terminating"
    return "ready" if ready else "not ready"

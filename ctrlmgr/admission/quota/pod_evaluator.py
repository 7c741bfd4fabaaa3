"""Measures pods: counts pods, and sums the requests and limits of their containers.

Guarantees: a pod that has terminated, or that still exists after its grace period, counts only for `count/pods`. During
a resize, a pod is charged for the maximum of its requested, allocated and actual amounts.

Rules come from Kubernetes' `pkg/quota/v1/evaluator/core/pods.go` and `component-helpers/resource/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from ctrlmgr.admission.quota.evaluator import Evaluator, Fields, Requirement
from ctrlmgr.admission.quota.quota_amounts import Amounts, added, larger
from ctrlmgr.caches.memoized import memoized
from ctrlmgr.clock import parse_time
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.validation.quantities import HUGE_PAGES, is_extended, is_native
from ctrlmgr.kinds.core.pod.pod_resources import aggregate, is_pod_level, quality_of_service

_COUNT: Final = "count/pods"
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_NAMES: Final = frozenset(
    (_COUNT, "pods", *_COMPUTE, *(_REQUESTS + each for each in _COMPUTE), *(_LIMITS + each for each in _COMPUTE))
)
_NEW: Final = frozenset(("phase", "qosClass"))
"""A field in a pod's status; a pod without this field has no allocated resources."""
_COUNTED: Final = ("name", "resources", "restartPolicy")
"""The fields of a container that affect the usage."""
_REQUIRED: Final = frozenset(prefix + each for prefix in ("", _REQUESTS, _LIMITS) for each in ("cpu", "memory"))
"""The amounts that each container must set if a quota limits them.

Kubernetes' source calls this rule a mistake, but Kubernetes still enforces the rule.
"""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class PodEvaluator(Evaluator):
    """Evaluates pods."""

    def handles(self, subresource: str, operation: Verb) -> bool:
        """Return whether writes of this kind may increase the usage: creations, resizes, and some updates of pods.

        An update may set a deadline, which moves the pod to another scope.
        """
        return (subresource, operation) in (("", Verb.CREATE), ("", Verb.UPDATE), ("resize", Verb.UPDATE))

    def concerns(self, attributes: Attributes) -> bool:
        """Return whether an update moves the pod between the scopes Terminating and NotTerminating."""
        if attributes.subresource or attributes.old is None:
            return True
        before, after = (each.get("spec") or {} for each in (attributes.old, attributes.fields))
        return _ends(before) != _ends(after)

    def names(self, given: Collection[str]) -> list[str]:
        """Return the given resource names that pods use."""
        return [name for name in given if name in _NAMES or _is_prefixed(name)]

    def usage(self, fields: Fields, now: str) -> Amounts:
        """Return the amounts that a pod uses."""
        used = {_COUNT: "1"}
        if is_over(fields, now):
            return used
        if _is_resized(fields):
            return used | _compute(requests_of(fields), limits_of(fields))
        return used | _requested_amounts(fields)

    def in_scope(self, requirement: Requirement, fields: Fields) -> bool:
        """Return whether a pod is in a scope."""
        spec = fields.get("spec") or {}
        match requirement.scope:
            case "Terminating":
                return _ends(spec)
            case "NotTerminating":
                return not _ends(spec)
            case "BestEffort":
                return quality_of_service(spec) == "BestEffort"
            case "NotBestEffort":
                return quality_of_service(spec) != "BestEffort"
            case "PriorityClass":
                class_ = spec.get("priorityClassName")
                return requirement.selects((class_,) if class_ else ())
            case "CrossNamespacePodAffinity":
                return _looks_beyond(spec)
        return False

    def knows_scopes(self) -> bool:
        """Return True, because the plugin's configuration may limit pods by scope."""
        return True

    def problem(self, required: Collection[str], fields: Fields) -> str:
        """Return an error if containers lack requests or limits that the quota requires."""
        spec = fields.get("spec") or {}
        own = spec.get("resources") or {}
        if own.get("requests") or own.get("limits"):
            return ""  # the pod-level amounts apply to all containers
        missing: dict[str, set[str]] = {}
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            resources = container.get("resources") or {}
            computed = _compute(resources.get("requests") or {}, resources.get("limits") or {})
            for name in _REQUIRED.intersection(required) - computed.keys():
                missing.setdefault(name, set()).add(container["name"])
        if not missing:
            return ""
        return "must specify " + "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _is_prefixed(name: str) -> bool:
    """Return whether a resource name stands for huge pages or an extended resource."""
    if name.startswith((HUGE_PAGES, _REQUESTS + HUGE_PAGES)):
        return True
    return name.startswith(_REQUESTS) and (not is_native(name) or _is_implicit(name))


def _is_implicit(name: str) -> bool:
    return name.startswith("requests.deviceclass.resource.kubernetes.io/")


def _compute(requests: Amounts, limits: Amounts) -> dict[str, str]:
    """Return the amounts that requests and limits use, under the names that quotas contain."""
    used = {"pods": "1"}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(HUGE_PAGES):
            used |= {name: amount, _REQUESTS + name: amount}
        elif is_extended(name):
            used[_REQUESTS + name] = amount
    used |= {_LIMITS + name: amount for name, amount in limits.items() if name in _COMPUTE}
    return used


def _is_resized(fields: Fields) -> bool:
    """Return whether allocated amounts may count in addition to requested ones.

    The result is False for a new pod, because a new pod has no allocated amounts.
    """
    return not (fields.get("status") or {}).keys() <= _NEW


def _requested_amounts(fields: Fields) -> dict[str, str]:
    """Return the amounts that a pod without allocated resources uses."""
    spec = fields.get("spec") or {}
    requests_of_pod = {name: spec[name] for name in ("overhead", "resources") if name in spec}
    for name in ("containers", "initContainers"):
        if name in spec:
            requests_of_pod[name] = [{key: each[key] for key in _COUNTED if key in each} for each in spec[name] or ()]
    return _use_of(_encode({"spec": requests_of_pod}))


@memoized(entries=1024, longest=2048)
def _use_of(encoded: bytes) -> dict[str, str]:
    """Return the amounts that a pod uses, computed from its resource fields.

    The result is memoized, because pods of one template have equal fields.
    """
    fields = _decode(encoded)
    return _compute(requests_of(fields), limits_of(fields))


def is_over(fields: Fields, now: str) -> bool:
    """Return whether a pod has terminated, or still exists after its grace period, for example on a lost node."""
    if (fields.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return True
    metadata = fields.get("metadata") or {}
    deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if not deleted or grace is None:
        return False
    return parse_time(now) > parse_time(str(deleted)) + int(grace) * 1_000_000


def requests_of(fields: Fields) -> Amounts:
    """Return the requests of a pod, including its overhead."""
    spec = fields.get("spec") or {}
    requests = aggregate(_effective(fields, "requests"), "requests")
    requests |= _pod_level(fields, "requests")
    return added(requests, spec.get("overhead") or {})


def limits_of(fields: Fields) -> Amounts:
    """Return the limits of a pod; the overhead is added only to limits that exist."""
    spec = fields.get("spec") or {}
    limits = aggregate(_effective(fields, "limits"), "limits")
    limits |= _pod_level(fields, "limits")
    overhead = spec.get("overhead") or {}
    return added(limits, {name: amount for name, amount in overhead.items() if name in limits})


def _pod_level(fields: Fields, field: str) -> dict[str, str]:
    """Return the pod-level amounts of a pod.

    During a resize, each returned amount is the maximum of the requested, allocated and actual amounts.
    """
    resources = ((fields.get("spec") or {}).get("resources") or {}).get(field) or {}
    if not any(is_pod_level(name) for name in resources):
        return {}
    status = fields.get("status") or {}
    most = larger({} if _is_infeasible(status) else resources, (status.get("resources") or {}).get(field) or {})
    if field == "requests":
        most = larger(most, status.get("allocatedResources") or {})
    return {name: amount for name, amount in most.items() if is_pod_level(name)}


def _effective(fields: Fields, field: str) -> dict[str, Any]:
    """Return the spec; each container in it has the amounts that quotas count."""
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    infeasible = _is_infeasible(status)
    found = {
        each["name"]: each
        for group in ("containerStatuses", "initContainerStatuses")
        for each in status.get(group) or ()
        if each.get("resources") is not None
    }
    return {
        "containers": [_counted(each, found, field, infeasible) for each in spec.get("containers") or ()],
        "initContainers": [
            _counted(each, found if each.get("restartPolicy") == "Always" else {}, field, infeasible)
            for each in spec.get("initContainers") or ()
        ],
    }


def _is_infeasible(status: Mapping[str, Any]) -> bool:
    """Return whether the node has marked the pod's resize as infeasible."""
    conditions = status.get("conditions") or ()
    pending = (each.get("reason") for each in conditions if each.get("type") == "PodResizePending")
    return next(pending, "") == "Infeasible"


def _counted(
    container: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]], field: str, infeasible: bool
) -> Mapping[str, Any]:
    status = found.get(container["name"])
    if status is None:
        return container
    has = (status.get("resources") or {}).get(field) or {}
    if field == "requests":
        has = larger(has, status.get("allocatedResources") or {})
    resources = {} if infeasible else (container.get("resources") or {}).get(field) or {}
    return {**container, "resources": {field: larger(resources, has)}}


def _ends(spec: Mapping[str, Any]) -> bool:
    seconds = spec.get("activeDeadlineSeconds")
    return seconds is not None and seconds >= 0


def _looks_beyond(spec: Mapping[str, Any]) -> bool:
    """Return whether a pod has affinity terms that select pods of other namespaces."""
    affinity = spec.get("affinity") or {}
    for each in (affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}):
        terms = list(each.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        weighted = each.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [term.get("podAffinityTerm") or {} for term in weighted]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False

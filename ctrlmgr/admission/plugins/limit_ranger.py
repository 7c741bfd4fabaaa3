"""LimitRanger: sets default requests and limits of containers, and enforces the bounds that LimitRanges define.

Guarantees: defaults are set only on creation and on resizing, where container resources change. All LimitRanges of a
namespace check the same object, in the order of the LimitRanges' names.

Rules come from Kubernetes' `plugin/pkg/admission/limitranger/admission.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from ctrlmgr.admission.admission_plugin import Plugin, Registration
from ctrlmgr.api.quantity import MILLI, WHOLE, parse
from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.kinds.core.pod.pod_resources import Amounts, aggregate, amounts_of, default_pod_resources

LIMIT_RANGES = Resource("", "limitranges")
CLAIMS = Resource("", "persistentvolumeclaims")
ANNOTATION = "kubernetes.io/limit-ranger"

_LARGEST_IN_MILLI = (2**63 - 1) // 1000 * WHOLE
_NONE: Amounts = {}
_OF_PODS = ("cpu", "memory")
"""The resources in `spec.resources` to which a LimitRange for pods applies."""


class MeasuredItem(NamedTuple):
    """An item that limits apply to: a container, a pod as a whole, or a claim."""

    type: str
    """The type of the limits that apply to the item, as in a LimitRange."""
    requests: Amounts
    limits: Amounts


class LimitRanger(Plugin):
    """Applies LimitRanges to pods and claims."""

    name: ClassVar[str] = "LimitRanger"
    activated_by = Registration(LIMIT_RANGES, of_namespace=True)

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations and resizes of pods, and writes of claims.

        Other updates of pods do not change their containers' resources.
        """
        if resource == PODS:
            return (subresource, operation) in (("", Verb.CREATE), ("resize", Verb.UPDATE))
        return resource == CLAIMS and not subresource and operation in (Verb.CREATE, Verb.UPDATE)

    def admit(self, attributes: Attributes) -> None:
        """Set the default requests and limits that the LimitRanges define."""
        if attributes.resource == PODS:
            for limits in _limit_ranges(attributes):
                if set_defaults(attributes.fields, limits):
                    attributes.changed(self.name)
            spec = attributes.fields.get("spec") or {}
            # Kubernetes sets the defaults of a pod again when it reads the pod from storage.
            if spec.get("resources") is not None:
                default_pod_resources(spec)

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if an amount violates a minimum, a maximum, or a maximum ratio of limit to request."""
        for limits in _limit_ranges(attributes):
            problems = list(dict.fromkeys(violations(attributes, limits)))
            if problems:
                raise attributes.forbidden(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


def _limit_ranges(attributes: Attributes) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield the limits of each LimitRange of the namespace; yield nothing if the object is being deleted."""
    old = attributes.old
    if old is not None and old["metadata"].get("deletionTimestamp"):
        return
    for each in attributes.view.list(LIMIT_RANGES, attributes.namespace):
        yield (each.to_dict().get("spec") or {}).get("limits") or ()


def set_defaults(pod: Unstructured, limits: Sequence[Mapping[str, Any]]) -> bool:
    """Set missing requests and limits of containers, and list the set fields in an annotation.

    Return whether a request or limit was set.
    """
    ours = [each for each in limits if each.get("type") == "Container"]
    requests = {name: amount for each in ours for name, amount in (each.get("defaultRequest") or {}).items()}
    maxima = {name: amount for each in ours for name, amount in (each.get("default") or {}).items()}
    spec, notes = pod.get("spec") or {}, list[str]()
    for field, label in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(field) or ():
            notes += _fill(container, "requests", requests, f"request for {label}")
            notes += _fill(container, "limits", maxima, f"limit for {label}")
    if notes:
        annotations = pod["metadata"].get("annotations") or {}
        pod["metadata"]["annotations"] = {**annotations, ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}
    return bool(notes)


def _fill(container: dict[str, Any], field: str, defaults: Amounts, what: str) -> list[str]:
    resources = container.get("resources") or {}
    given = resources.get(field) or {}
    missing = {name: amount for name, amount in defaults.items() if name not in given}
    if not missing:
        return []
    container["resources"] = {**resources, field: {**given, **missing}}
    return [f"{', '.join(sorted(missing))} {what} {container['name']}"]


def violations(attributes: Attributes, limits: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield an error for each violation of a LimitRange by a new or changed object."""
    if attributes.resource == CLAIMS:
        claim = MeasuredItem(
            "PersistentVolumeClaim", amounts_of(attributes.fields.get("spec") or {}, "requests"), _NONE
        )
        for limit in limits:
            if limit.get("type") == claim.type:
                yield from _check(limit, "min", claim, _below)
                yield from _check(limit, "max", claim, _request_above)
        return
    spec = attributes.fields.get("spec") or {}
    for limit in limits:
        for item in _measured_items(spec, limit.get("type") or ""):
            yield from _check(limit, "min", item, _below)
            yield from _check(limit, "max", item, _above)
            yield from _check(limit, "maxLimitRequestRatio", item, _apart)


def _measured_items(spec: Mapping[str, Any], type_: str) -> Iterator[MeasuredItem]:
    if type_ == "Container":
        for field in ("containers", "initContainers"):
            for container in spec.get(field) or ():
                yield MeasuredItem(type_, amounts_of(container, "requests"), amounts_of(container, "limits"))
    if type_ == "Pod":
        yield MeasuredItem(type_, _pod_amounts(spec, "requests"), _pod_amounts(spec, "limits"))


def _pod_amounts(spec: Mapping[str, Any], field: str) -> Amounts:
    """Return the total amounts of a pod's containers, or the pod-level amounts if the pod sets them."""
    own = {name: amount for name, amount in amounts_of(spec, field).items() if name in _OF_PODS}
    return {**aggregate(spec, field), **own}


_Problem = Callable[[str, str, MeasuredItem], str | None]


def _check(limit: Mapping[str, Any], field: str, item: MeasuredItem, problem: _Problem) -> Iterator[str]:
    for name, enforced in sorted((limit.get(field) or {}).items()):
        if (found := problem(name, enforced, item)) is not None:
            yield found


def _values(*amounts: str) -> list[int]:
    """Return resource amounts in thousandths, so that they can be compared.

    If one amount in thousandths is too large for an integer of Go, all amounts are returned in whole units.
    """
    parsed = [parse(each) for each in amounts]
    unit = MILLI if all(each <= _LARGEST_IN_MILLI for each in parsed) else WHOLE
    return [-(-each // unit) for each in parsed]


def _below(name: str, enforced: str, item: MeasuredItem) -> str | None:
    start = f"minimum {name} usage per {item.type} is {enforced}"
    request, limit = item.requests.get(name), item.limits.get(name)
    least, requested, limited = _values(enforced, request or "0", limit or "0")
    if request is None:
        return f"{start}.  No request is specified"
    if requested < least:
        return f"{start}, but request is {request}"
    return f"{start}, but limit is {limit}" if limit is not None and limited < least else None


def _above(name: str, enforced: str, item: MeasuredItem) -> str | None:
    start = f"maximum {name} usage per {item.type} is {enforced}"
    request, limit = item.requests.get(name), item.limits.get(name)
    most, requested, limited = _values(enforced, request or "0", limit or "0")
    if limit is None:
        return f"{start}.  No limit is specified"
    if limited > most:
        return f"{start}, but limit is {limit}"
    return f"{start}, but request is {request}" if request is not None and requested > most else None


def _request_above(name: str, enforced: str, item: MeasuredItem) -> str | None:
    start = f"maximum {name} usage per {item.type} is {enforced}"
    request = item.requests.get(name)
    if request is None:
        return f"{start}.  No request is specified"
    most, requested = _values(enforced, request)
    return f"{start}, but request is {request}" if requested > most else None


def _apart(name: str, enforced: str, item: MeasuredItem) -> str | None:
    start = f"{name} max limit to request ratio per {item.type} is {enforced}"
    requested, limited = _values(item.requests.get(name) or "0", item.limits.get(name) or "0")
    if not requested:
        return f"{start}, but no request is specified or request is 0"
    if not limited:
        return f"{start}, but no limit is specified or limit is 0"
    ratio = limited / requested
    return f"{start}, but provided ratio is {ratio:.6f}" if ratio * WHOLE > parse(enforced) else None

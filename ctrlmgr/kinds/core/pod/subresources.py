"""Decides how bindings and evictions change a pod; the engine writes the changes.

Guarantees: the functions are pure, unless their docstring says that they change an argument. An eviction and the update
of its PodDisruptionBudget are written in one append. Therefore two evictions never use the same allowed disruption.

Source: Kubernetes `pkg/registry/core/pod/storage/{storage,eviction}.go`, `plugin/pkg/admission/podtopologylabels` and
`component-helpers/apps/poddisruptionbudget`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.api_errors import conflict, forbidden
from ctrlmgr.engine.strategy import Context
from ctrlmgr.errors import BadRequest, InternalError, StatusCause, StatusDetails, TooManyRequests, UnknownError
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.kinds.core.pod.pod_conditions import is_ready, set_condition
from ctrlmgr.kinds.label_selectors import selector_of

BINDINGS = Resource("", "pods/binding")
BUDGETS = Resource("policy", "poddisruptionbudgets")
MOST_DISRUPTED = 2000
"""The maximum number of evictions that the controller of a PodDisruptionBudget has not yet observed."""

_WOULD_VIOLATE = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_BUDGET_STATUS = (  # in the order in which Go prints them
    "observedGeneration",
    "disruptedPods",
    "disruptionsAllowed",
    "currentHealthy",
    "desiredHealthy",
    "expectedPods",
    "conditions",
)


def bind(ctx: Context, pod: Unstructured, binding: Unstructured) -> None:
    """Assign `pod` to the node of `binding`, in place.

    Raises `BadRequest` if the binding names another pod, and, as in Kubernetes, `InternalError` if the binding names no
    node. Raises `Conflict` if the pod's UID or the resourceVersion differs, or if the pod is terminating, has a node,
    or has scheduling gates.
    """
    metadata, requested = metadata_of(pod), binding.get("metadata") or {}
    name, target = metadata["name"], binding.get("target") or {}
    if requested.get("name", name) != name:
        raise BadRequest("name in URL does not match name in Binding object")
    if problems := _binding_problems(target):
        raise InternalError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    _check_identity(metadata, requested, name)
    if problem := _unbindable(pod, name):
        raise conflict(BINDINGS, name, problem)
    pod["spec"]["nodeName"] = target["name"]
    if annotations := requested.get("annotations"):
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    if labels := requested.get("labels"):
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    status: dict[str, Any] = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    set_condition(status, ctx.now, "PodScheduled", "True")


def _binding_problems(target: dict[str, Any]) -> list[str]:
    problems: list[str] = []
    if target.get("kind") not in (None, "", "Node"):
        problems.append(f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        problems.append("target.name: Required value")
    return problems


def _check_identity(metadata: dict[str, Any], requested: dict[str, Any], name: str) -> None:
    for field, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if requested.get(field) and requested[field] != metadata.get(field):
            key = f"/pods/{metadata.get('namespace', '')}/{name}"
            detail = f"{shown} in precondition: {requested[field]}, {shown} in object meta: {metadata.get(field, '')}"
            problem = f"AdditionalErrorMsg: Precondition failed: {detail}"
            raise conflict(
                PODS, name, f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, {problem}"
            )


def _unbindable(pod: Unstructured, name: str) -> str:
    spec = pod.setdefault("spec", {})
    if metadata_of(pod).get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""


class Evicted(NamedTuple):
    """The steps of an eviction: one append stores `pod` and `budget`, and then the pod is deleted."""

    pod: Unstructured
    """The pod, with a condition that announces its eviction. In a dry run, the pod is unchanged."""
    budget: Proposal | None
    """The PodDisruptionBudget, with one allowed disruption less than before. The budget is None if the eviction uses no
    budget.
    """
    options: Unstructured
    """The DeleteOptions for the deletion of the pod."""


def evict(ctx: Context, pod: Object, eviction: Unstructured) -> Evicted:
    """Decide whether `pod` may be evicted; `eviction` is a policy/v1 Eviction.

    Raises `TooManyRequests` with the cause `DisruptionBudget` if the PodDisruptionBudget does not allow the eviction
    now, and `Forbidden` if the budget is malformed. Raises `UnknownError` if several PodDisruptionBudgets select the
    pod, and `BadRequest` if the eviction names another pod.
    """
    if ((eviction.get("metadata") or {}).get("name") or pod.name) != pod.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    options = dict(eviction.get("deleteOptions") or {})
    fields = pod.to_dict()
    status: dict[str, Any] = fields.setdefault("status", {})
    dry_run = ctx.dry_run or bool(options.get("dryRun"))
    used = None
    if not _needs_no_budget(status, pod):
        budgets = _budgets_of(ctx, pod)
        if len(budgets) > 1:
            raise UnknownError(_SEVERAL)
        if budgets and not _is_spared(budgets[0], status):
            used = _use(ctx, budgets[0], pod.name)
    if dry_run:
        return Evicted(fields, None, options)
    set_condition(status, ctx.now, "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
    return Evicted(fields, used, options)


def has_uncounted(ctx: Context, pod: Object) -> bool:
    """Return whether the budget's controller has not yet observed that some evicted pods are terminating."""
    return any((budget.to_dict().get("status") or {}).get("disruptedPods") for budget in _budgets_of(ctx, pod))


def _needs_no_budget(status: dict[str, Any], pod: Object) -> bool:
    return status.get("phase") in ("Succeeded", "Failed", "Pending") or pod.is_terminating


def _budgets_of(ctx: Context, pod: Object) -> list[Object]:
    found: list[Object] = []
    for budget in ctx.view.list(BUDGETS, pod.namespace):
        selector = selector_of((budget.to_dict().get("spec") or {}).get("selector") or {})
        if selector is not None and not selector.is_empty and selector.matches(pod.labels):
            found.append(budget)
    return found


def _is_spared(budget: Object, status: dict[str, Any]) -> bool:
    """Return whether an unhealthy pod can be evicted although its PodDisruptionBudget allows none (KEP-3017)."""
    if is_ready(status):
        return False
    fields = budget.to_dict()
    health = fields.get("status") or {}
    desired = health.get("desiredHealthy") or 0
    always = (fields.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return always or (health.get("currentHealthy") or 0) >= desired > 0


def _use(ctx: Context, budget: Object, pod: str) -> Proposal:
    fields = budget.to_dict()
    status: dict[str, Any] = dict(fields.get("status") or {})
    _check_budget(budget.name, (fields.get("metadata") or {}).get("generation") or 0, status)
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: ctx.now}
    if not status["disruptionsAllowed"]:
        status["conditions"] = _exhausted(status, ctx.now)
    fields["status"] = {field: status[field] for field in _BUDGET_STATUS if field in status}
    return Proposal(EventType.MODIFIED, Object.from_dict(fields), budget.revision)


def _check_budget(name: str, generation: int, status: dict[str, Any]) -> None:
    allowed = status.get("disruptionsAllowed") or 0
    if (status.get("observedGeneration") or 0) < generation:
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10)
    if allowed < 0:
        raise forbidden(Resource("policy", "poddisruptionbudget"), name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > MOST_DISRUPTED:
        detail = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(Resource("policy", "poddisruptionbudget"), name, detail)
    if allowed == 0:
        desired, healthy = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
        raise _too_many(f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently", 0)


def _too_many(cause: str, seconds: int) -> TooManyRequests:
    causes = (StatusCause("DisruptionBudget", cause),)
    return TooManyRequests(_WOULD_VIOLATE, details=StatusDetails(causes=causes, retry_after_seconds=seconds))


def _exhausted(status: dict[str, Any], now: str) -> list[dict[str, Any]]:
    conditions: Sequence[dict[str, Any]] = status.get("conditions") or ()
    old = next((each for each in conditions if each.get("type") == "DisruptionAllowed"), {})
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": status.get("observedGeneration") or 0,
        "lastTransitionTime": old.get("lastTransitionTime") if old.get("status") == "False" else now,
        "reason": "InsufficientPods",
        "message": "",
    }
    if not condition["observedGeneration"]:
        del condition["observedGeneration"]
    kept = [condition if each is old else each for each in conditions]
    return kept if old else [*kept, condition]

"""Creates the evaluators of quotas.

Some kinds have a special evaluator. For any other kind, an evaluator that only counts objects is created on first use.

Rules come from Kubernetes' `pkg/quota/v1/install/registry.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ctrlmgr.admission.quota.device_evaluator import ResourceClaimEvaluator
from ctrlmgr.admission.quota.evaluator import Evaluator
from ctrlmgr.admission.quota.pod_evaluator import PodEvaluator
from ctrlmgr.admission.quota.service_evaluator import ServiceEvaluator
from ctrlmgr.admission.quota.volume_claim_evaluator import ClaimEvaluator
from ctrlmgr.api.resource import EVENTS, EVENTS_V1, PODS, SERVICES, Resource

CLAIMS: Final = Resource("", "persistentvolumeclaims")
RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "resourceclaims")

_SPECIAL: Final[Mapping[Resource, Callable[[Resource], Evaluator]]] = {
    PODS: PodEvaluator,
    SERVICES: ServiceEvaluator,
    CLAIMS: ClaimEvaluator,
    RESOURCE_CLAIMS: ResourceClaimEvaluator,
}
_IGNORED: Final = frozenset(
    (
        Resource("", "bindings"),
        EVENTS,
        EVENTS_V1,
        Resource("authorization.k8s.io", "localsubjectaccessreviews"),
    )
)
"""Resources that quotas do not count, because their objects are not stored or exist only for a short time."""


class Evaluators:
    """The quota evaluators, by the resource that they measure."""

    def __init__(self) -> None:
        """Create the evaluators of the kinds that have a special evaluator."""
        self._known = {resource: make(resource) for resource, make in _SPECIAL.items()}

    def of(self, resource: Resource) -> Evaluator | None:
        """Return the evaluator of a resource; None if quotas do not count the resource."""
        if resource in _IGNORED:
            return None
        evaluator = self._known.get(resource)
        if evaluator is None:
            evaluator = self._known[resource] = Evaluator(resource)
        return evaluator

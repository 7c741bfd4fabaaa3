"""Lists the rules that infer the causes of a change, for each kind.

Guarantee: the first rule with a result is used; the most certain rules come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ctrlmgr.inspection.inferring import cluster_causes, deletions, endpoint_causes, owner_causes
from ctrlmgr.inspection.inferring.inference import Inference, Rule, is_cluster
from ctrlmgr.inspection.inferring.object_history import PastSteps, Step
from ctrlmgr.inspection.inferring.status_causes import COUNTINGS, infer_status

RULES: Final[Mapping[str, Sequence[Rule]]] = {
    "endpoints": (endpoint_causes.infer_endpoints, deletions.infer_deletion),
    "endpointslices.discovery.k8s.io": (deletions.infer_deletion, endpoint_causes.infer_slices),
    "pods": (
        deletions.infer_deletion,
        owner_causes.infer_creation,
        cluster_causes.infer_binding,
        cluster_causes.infer_pod_status,
    ),
    "nodes": (cluster_causes.infer_node,),
    "namespaces": (cluster_causes.infer_namespace, deletions.infer_deletion),
    "replicasets.apps": (
        deletions.infer_deletion,
        owner_causes.infer_creation,
        owner_causes.infer_replica_set,
        infer_status,
    ),
    "deployments.apps": (deletions.infer_deletion, infer_status, owner_causes.infer_deployment),
}
"""The rules by kind; all kinds that are not listed have the rules `_ANY` and `infer_status`."""

_ANY: Final[Sequence[Rule]] = (
    deletions.infer_deletion,
    cluster_causes.infer_namespace_content,
    owner_causes.infer_creation,
)


def infer(step: Step, past: PastSteps) -> Inference | None:
    """Return the inference for a change, None if no rule has a result."""
    if not is_cluster(step):
        return None
    kind = str(step.resource)
    rules = RULES.get(kind) or (*_ANY, *((infer_status,) if kind in COUNTINGS else ()))
    return next((found for rule in rules if (found := rule(step, past)) is not None), None)

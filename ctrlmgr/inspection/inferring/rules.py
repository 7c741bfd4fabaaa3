"""The rules by kind, and putting a question to them.

Guarantee: the first rule that says something is believed; those that are surest come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ctrlmgr.inspection.inferring import cluster, endpoints, goings, owners
from ctrlmgr.inspection.inferring.counted import COUNTINGS, of_status
from ctrlmgr.inspection.inferring.inference import Inference, Rule, is_cluster
from ctrlmgr.inspection.inferring.past import Past, Step

RULES: Final[Mapping[str, Sequence[Rule]]] = {
    "endpoints": (endpoints.of_endpoints, goings.of_going),
    "endpointslices.discovery.k8s.io": (goings.of_going, endpoints.of_slices),
    "pods": (goings.of_going, owners.of_new, cluster.of_binding, cluster.of_pod_status),
    "nodes": (cluster.of_node,),
    "namespaces": (cluster.of_namespace, goings.of_going),
    "replicasets.apps": (goings.of_going, owners.of_new, owners.of_replica_set, of_status),
    "deployments.apps": (goings.of_going, of_status, owners.of_deployment),
}
"""By kind; `_ANY` and `of_status` for the others."""

_ANY: Final[Sequence[Rule]] = (goings.of_going, cluster.of_gift, owners.of_new)


def infer(step: Step, past: Past) -> Inference | None:
    """Return what is inferred of a change; None if nothing is."""
    if not is_cluster(step):
        return None
    kind = str(step.resource)
    rules = RULES.get(kind) or (*_ANY, *((of_status,) if kind in COUNTINGS else ()))
    return next((found for rule in rules if (found := rule(step, past)) is not None), None)

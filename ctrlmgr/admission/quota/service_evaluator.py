"""Measures Services: counts Services, node ports and load balancers.

Rules come from Kubernetes' `pkg/quota/v1/evaluator/core/services.go`.
"""

from __future__ import annotations

from collections.abc import Collection

from ctrlmgr.admission.quota.evaluator import Evaluator, Fields
from ctrlmgr.admission.quota.quota_amounts import Amounts
from ctrlmgr.engine.admission_attributes import Verb

_NAMES = ("count/services", "services", "services.nodeports", "services.loadbalancers")


class ServiceEvaluator(Evaluator):
    """Measures Services; an update that changes a Service's type can change the usage."""

    def handles(self, subresource: str, operation: Verb) -> bool:
        """Return whether writes of this kind may increase the usage: creations and updates of Services."""
        return operation in (Verb.CREATE, Verb.UPDATE) and not subresource

    def names(self, given: Collection[str]) -> list[str]:
        """Return the given resource names that Services use."""
        return [name for name in given if name in _NAMES]

    def usage(self, fields: Fields, now: str) -> Amounts:
        """Return the amounts that a Service uses.

        Requested node ports count, because they may not be allocated yet.
        """
        spec = fields.get("spec") or {}
        ports, type_ = spec.get("ports") or (), spec.get("type")
        node_ports = 0
        if type_ == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(bool(port.get("nodePort")) for port in ports)
        elif type_ in ("NodePort", "LoadBalancer"):
            node_ports = len(ports)
        balancers = int(type_ == "LoadBalancer")
        return dict(zip(_NAMES, ("1", "1", str(node_ports), str(balancers)), strict=True))

"""A cluster with admission policies, and with a namespace `shop` in which tests write ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.engine.stage import Response, Stage

PREFIX = "/apis/admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


class PolicyCluster:
    """A cluster for tests of admission policies. Policies and their bindings have the name `p` by default."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.stage.namespace("shop")

    def policy(self, *rules: str | Mapping[str, Any], name: str = "p", **spec: Any) -> Response:
        """Store a ValidatingAdmissionPolicy with validations."""
        validations = [each if isinstance(each, Mapping) else {"expression": each} for each in rules]
        match = {"resourceRules": [RULE], **spec.pop("matchConstraints", {})}
        body = {"metadata": {"name": name}, "spec": {"matchConstraints": match, "validations": validations, **spec}}
        return self.stage.send("POST", f"{PREFIX}/validatingadmissionpolicies", body)

    def mutating(self, *mutations: str, name: str = "p", **spec: Any) -> Response:
        """Store a MutatingAdmissionPolicy (with `Object{…}` or a list of patches), and a binding of the policy."""
        made = [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": each}}
            if each.startswith("Object")
            else {"patchType": "JSONPatch", "jsonPatch": {"expression": each}}
            for each in mutations
        ]
        rules = [{**RULE, "operations": ["CREATE", "UPDATE"]}]
        match = {"resourceRules": rules, **spec.pop("matchConstraints", {})}
        reference = {"paramRef": spec.pop("paramRef")} if "paramRef" in spec else {}
        fields = {"matchConstraints": match, "mutations": made, "reinvocationPolicy": "Never", **spec}
        body = {"metadata": {"name": name}, "spec": fields}
        answer = self.stage.send("POST", f"{PREFIX}/mutatingadmissionpolicies", body)
        binding = {"metadata": {"name": name}, "spec": {"policyName": name, **reference}}
        assert self.stage.send("POST", f"{PREFIX}/mutatingadmissionpolicybindings", binding).code == 201
        return answer

    def bind(self, *actions: str, name: str = "p", policy: str = "p", **spec: Any) -> Response:
        """Store a binding of a policy; without actions in `spec`, the binding denies writes."""
        body = {
            "metadata": {"name": name},
            "spec": {"policyName": policy, "validationActions": list(actions) or ["Deny"], **spec},
        }
        return self.stage.send("POST", f"{PREFIX}/validatingadmissionpolicybindings", body)

    def create(self, name: str = "x", path: str = "/api/v1/namespaces/shop/configmaps", **fields: Any) -> Response:
        """Create a ConfigMap, or another object at `path`."""
        body = {"metadata": {"name": name, **fields.pop("metadata", {})}, **fields}
        return self.stage.send("POST", path, body)


def causes(answer: Response) -> Sequence[str]:
    return [each["message"] for each in answer.body["details"]["causes"]]

"""The ValidatingAdmissionPolicy status controller: type-checks each generation of a policy once.

Guarantees:
- The controller server-side applies `status.observedGeneration` and `status.typeChecking`, with force, as the field
  manager `validatingadmissionpolicy-status`. The controller does not change the conditions of policies.
- If the API does not serve a kind when a policy is checked, the kind is skipped. If the API serves the kind later, the
  policy is not checked again.
- Schemas are built for each check, and discarded after it. Therefore clusters without policies need no memory for
  schemas.

Source: `pkg/controller/validatingadmissionpolicystatus/controller.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.validatingadmissionpolicy_status import DESCRIPTOR, Options
from ctrlmgr.controllers.validatingadmissionpolicy_status.matched_kinds import kinds_to_check
from ctrlmgr.controllers.validatingadmissionpolicy_status.policy_type_checks import Checked, expression_warnings
from ctrlmgr.controllers.validatingadmissionpolicy_status.resolved_schemas import schema_of
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Watch
from ctrlmgr.manager.controller import own_key

MANAGER: Final = "validatingadmissionpolicy-status"
POLICIES: Final = Resource("admissionregistration.k8s.io", "validatingadmissionpolicies")


class PolicyStatus:
    """Reconciles ValidatingAdmissionPolicies."""

    def __init__(self, policies: Lister, kinds: Kinds) -> None:
        """Create a reconciler that reads policies from `policies`, and checks them against the schemas of `kinds`."""
        self._policies = policies
        self._kinds = kinds

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Check a policy that has changed; raises the errors of `client` if the write fails."""
        policy = self._policies.get(key)
        if policy is None:
            return
        fields = policy.to_dict()
        generation = fields["metadata"].get("generation") or 0
        if generation <= ((fields.get("status") or {}).get("observedGeneration") or 0):
            return
        warnings = self._warnings(fields.get("spec") or {})
        status = {
            "observedGeneration": generation,
            "typeChecking": {"expressionWarnings": warnings} if warnings else {},
        }
        # The apply contains the uid of the policy. Therefore the apply cannot create a deleted policy again.
        head = {"kind": fields["kind"], "apiVersion": fields["apiVersion"]}
        metadata = {"name": policy.name, "uid": policy.uid}
        client.apply(
            Object.from_dict({**head, "metadata": metadata, "status": status}),
            MANAGER,
            force=True,
            subresource="status",
        )

    def _warnings(self, spec: Mapping[str, Any]) -> list[dict[str, str]]:
        against = [_checked(kind) for kind in kinds_to_check(spec, self._kinds)]
        return expression_warnings(spec, against, self._params(spec.get("paramKind") or {})) if against else []

    def _params(self, kind: Mapping[str, str]) -> Checked | None:
        group, _, version = (kind.get("apiVersion") or "").rpartition("/")
        found = self._kinds.by_gvk(GroupVersionKind(group, version, kind.get("kind") or ""))
        return _checked(found) if found is not None else None


def _checked(kind: Kind) -> Checked:
    return Checked(kind.gvk, schema_of(kind))


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    policies = context.informers.informer(POLICIES)
    reconciler = PolicyStatus(policies.lister, context.engine.kinds)
    workers = options.concurrent_validating_admission_policy_status_syncs
    return assemble(DESCRIPTOR, context, reconciler, [Watch(policies, own_key)], workers=workers)

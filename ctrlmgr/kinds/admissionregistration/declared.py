"""What the project knows of each kind of `admissionregistration.k8s.io`."""

from __future__ import annotations

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import NO_METADATA
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.kinds.admissionregistration import printers
from ctrlmgr.kinds.admissionregistration.webhooks import WebhookConfigurationStrategy
from ctrlmgr.kinds.declaration import Declaration


class AdmissionStrategy(Strategy):
    """Admission policies and their bindings, which are kept (Kubernetes `pkg/registry/admissionregistration`)."""

    allow_unconditional_update = False
    has_generation = True
    any_finalizer = True

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn that nothing obeys it."""
        return [f"{ctx.kind.name}: this server stores admission policies, but does not evaluate them"]


_V1 = "admissionregistration.k8s.io/v1"

KINDS = (
    Declaration(
        _V1,
        "MutatingAdmissionPolicy",
        strategy=AdmissionStrategy(),
        printer=printers.MUTATING_ADMISSION_POLICY,
        stored_version="v1beta1",
    ),
    Declaration(
        _V1,
        "MutatingAdmissionPolicyBinding",
        strategy=AdmissionStrategy(),
        printer=printers.ADMISSION_POLICY_BINDING,
        stored_version="v1beta1",
    ),
    Declaration(
        _V1,
        "MutatingWebhookConfiguration",
        strategy=WebhookConfigurationStrategy(mutates=True),
        printer=printers.WEBHOOK_CONFIGURATION,
    ),
    Declaration(
        _V1,
        "ValidatingAdmissionPolicy",
        strategy=AdmissionStrategy(),
        printer=printers.VALIDATING_ADMISSION_POLICY,
        resets=NO_METADATA,
    ),
    Declaration(
        _V1,
        "ValidatingAdmissionPolicyBinding",
        strategy=AdmissionStrategy(),
        printer=printers.ADMISSION_POLICY_BINDING,
    ),
    Declaration(
        _V1,
        "ValidatingWebhookConfiguration",
        strategy=WebhookConfigurationStrategy(mutates=False),
        printer=printers.WEBHOOK_CONFIGURATION,
    ),
)

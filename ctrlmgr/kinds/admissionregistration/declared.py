"""The declarations of the kinds of `admissionregistration.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.admissionregistration import printers
from ctrlmgr.kinds.admissionregistration.admission_policies import MutatingPolicyStrategy, ValidatingPolicyStrategy
from ctrlmgr.kinds.admissionregistration.admission_webhooks import WebhookConfigurationStrategy
from ctrlmgr.kinds.admissionregistration.policy_bindings import BindingStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

_V1 = "admissionregistration.k8s.io/v1"

KINDS = (
    Declaration(
        _V1,
        "MutatingAdmissionPolicy",
        strategy=MutatingPolicyStrategy(),
        printer=printers.MUTATING_ADMISSION_POLICY,
        stored_version="v1beta1",
    ),
    Declaration(
        _V1,
        "MutatingAdmissionPolicyBinding",
        strategy=BindingStrategy(mutates=True),
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
        strategy=ValidatingPolicyStrategy(),
        printer=printers.VALIDATING_ADMISSION_POLICY,
    ),
    Declaration(
        _V1,
        "ValidatingAdmissionPolicyBinding",
        strategy=BindingStrategy(mutates=False),
        printer=printers.ADMISSION_POLICY_BINDING,
    ),
    Declaration(
        _V1,
        "ValidatingWebhookConfiguration",
        strategy=WebhookConfigurationStrategy(mutates=False),
        printer=printers.WEBHOOK_CONFIGURATION,
    ),
)

"""The columns of admissionregistration.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from ctrlmgr.engine.tables.printer import UNSET, at, printer
from ctrlmgr.engine.tables.rows import aged, length, text

WEBHOOK_CONFIGURATION = printer("Webhooks:integer|Age", aged(length("webhooks")))
VALIDATING_ADMISSION_POLICY = printer(
    "Validations:integer|ParamKind|Age",
    aged(
        length("spec.validations"),
        lambda fields: (
            f"{at(fields, 'spec', 'paramKind', 'apiVersion')}/{at(fields, 'spec', 'paramKind', 'kind')}"
            if at(fields, "spec", "paramKind")
            else UNSET
        ),
    ),
)
ADMISSION_POLICY_BINDING = printer(
    "PolicyName|ParamRef|Age", aged(text("spec", "policyName"), text("spec", "paramRef", "name", nothing=UNSET))
)
MUTATING_ADMISSION_POLICY = printer(
    "Mutations:integer|ParamKind|Age",
    aged(length("spec.mutations"), text("spec", "paramKind", "kind", nothing=UNSET)),
)

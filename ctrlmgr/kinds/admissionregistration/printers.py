"""The `kubectl get` columns of admissionregistration.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.rows import aged, length, text
from ctrlmgr.engine.tables.table_printer import UNSET, printer
from ctrlmgr.kinds.label_selectors import selector_shown

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


def _param_ref(fields: Mapping[str, Any]) -> str:
    """Return a description of a binding's parameters: a named object or a selector.

    If the binding contains no namespace, the description of the object does not name one.
    """
    reference = (fields.get("spec") or {}).get("paramRef") or {}
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    selector = reference.get("selector")
    return UNSET if selector is None else selector_shown(selector)


ADMISSION_POLICY_BINDING = printer("PolicyName|ParamRef|Age", aged(text("spec", "policyName"), _param_ref))
MUTATING_ADMISSION_POLICY = printer(
    "Mutations:integer|ParamKind|Age",
    aged(length("spec.mutations"), text("spec", "paramKind", "kind", nothing=UNSET)),
)

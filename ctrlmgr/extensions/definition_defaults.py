"""Sets the defaults of a CustomResourceDefinition, and prepares it for validation as Kubernetes' strategy does.

Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/defaults.go`,
`pkg/registry/customresourcedefinition/strategy.go`.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.engine.validation.webhook_validation import DEFAULT_PORT


def set_defaults(definition: dict[str, Any]) -> None:
    """Set the defaults of apiextensions.k8s.io/v1."""
    spec: dict[str, Any] = definition.setdefault("spec", {})
    names: dict[str, Any] = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    conversion = spec.get("conversion")
    if conversion is None:
        spec["conversion"] = {"strategy": "None"}
    else:
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None and service.get("port") is None:
            service["port"] = DEFAULT_PORT
    status: dict[str, Any] = definition.setdefault("status", {})
    if not status.get("storedVersions") and (storage := _storage(spec)) is not None:
        status["storedVersions"] = [storage]


def prepare_new(definition: dict[str, Any]) -> None:
    """Replace the status of a new CustomResourceDefinition by the initial status."""
    storage = _storage(definition.get("spec") or {})
    definition["status"] = {} if storage is None else {"storedVersions": [storage]}


def prepare_changed(definition: dict[str, Any], old: dict[str, Any]) -> None:
    """Keep the stored status of a CustomResourceDefinition, and add a new storage version to its stored versions."""
    status = dict(old.get("status") or {})
    storage = _storage(definition.get("spec") or {})
    stored = list(status.get("storedVersions") or ())
    if storage is not None and storage not in stored:
        status["storedVersions"] = [*stored, storage]
    definition["status"] = status


def _storage(spec: dict[str, Any]) -> str | None:
    return next((each.get("name") or "" for each in spec.get("versions") or () if each.get("storage")), None)

"""The strategy of ServiceAccounts; a stored reference to a Secret contains only the Secret's name.

Source: Kubernetes `pkg/registry/core/serviceaccount/strategy.go`.
"""

from __future__ import annotations

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy

_ENFORCE_MOUNTABLE_SECRETS = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountStrategy(Strategy):
    """The strategy of the kind v1 ServiceAccount."""

    returns_deleted = True

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Reduce the references to Secrets to their names."""
        _clean_references(obj)

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Reduce the references to Secrets to their names."""
        _clean_references(new)

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about the deprecated annotation of a ServiceAccount, unless the old object has it."""
        annotations = obj["metadata"].get("annotations") or {}
        before = old["metadata"].get("annotations") or {} if old else {}
        if _ENFORCE_MOUNTABLE_SECRETS not in annotations or _ENFORCE_MOUNTABLE_SECRETS in before:
            return []
        advice = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        return [f"metadata.annotations[{_ENFORCE_MOUNTABLE_SECRETS}]: {advice}"]


def _clean_references(obj: Unstructured) -> None:
    if secrets := obj.get("secrets"):
        obj["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in secrets]

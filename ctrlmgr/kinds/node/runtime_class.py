"""The strategy of RuntimeClasses, which have an immutable handler, an overhead of pods, and a selector of nodes.

Source: Kubernetes `pkg/apis/node/validation/validation.go` and `pkg/registry/node/runtimeclass/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, required
from ctrlmgr.api.unstructured import Unstructured, repeated
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_labels
from ctrlmgr.kinds.common_rules import each_problem, immutable
from ctrlmgr.kinds.core.pod.pod_resources import validate_container_resources
from ctrlmgr.kinds.core.pod.scheduling import validate_tolerations
from ctrlmgr.kinds.core.pod.warnings import NODE_LABELS
from ctrlmgr.kinds.spec_difference import shown


class RuntimeClassStrategy(Strategy):
    """The strategy of the kind node.k8s.io/v1 RuntimeClass."""

    allow_create_on_update = True
    allow_unconditional_update = False
    any_finalizer = True

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the handler, the overhead, and the scheduling of a RuntimeClass."""
        handler = obj.get("handler") or ""
        errors = (
            each_problem(name_formats.dns1123_label, handler, Path("handler")) if handler else [required("handler")]
        )
        overhead, scheduling = obj.get("overhead"), obj.get("scheduling")
        if overhead is not None:
            limits = {"limits": overhead.get("podFixed") or {}}
            errors += validate_container_resources(limits, (), Path("overhead"))
        if scheduling is not None:
            errors += _validate_scheduling(scheduling, Path("scheduling"))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the handler of a RuntimeClass is unchanged."""
        return immutable(new.get("handler"), old.get("handler"), Path("handler"))

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about deprecated node labels in a RuntimeClass."""
        selected = (obj.get("scheduling") or {}).get("nodeSelector") or ()
        return [f"scheduling.nodeSelector: {NODE_LABELS[key]}" for key in selected if key in NODE_LABELS]


def _validate_scheduling(scheduling: Mapping[str, Any], path: Path) -> list[FieldError]:
    tolerations: Sequence[Mapping[str, Any]] = scheduling.get("tolerations") or ()
    errors = validate_labels(scheduling.get("nodeSelector") or {}, path.child("nodeSelector"))
    below = path.child("tolerations")
    errors += validate_tolerations(tolerations, below)
    keys = [{field: value for field, value in each.items() if field != "tolerationSeconds"} for each in tolerations]
    return errors + [duplicate(below.at(at), shown("Toleration", tolerations[at])) for at in sorted(repeated(keys))]

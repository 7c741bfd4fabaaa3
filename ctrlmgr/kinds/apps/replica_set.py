"""The strategies of ReplicaSets and ReplicationControllers: defaults and validation.

Source: Kubernetes' `pkg/apis/{apps,core}/v1/defaults.go`, `pkg/apis/{apps,core}/validation/validation.go` and
`pkg/registry/{apps/replicaset,core/replicationcontroller}/strategy.go`.
"""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, invalid, required
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation.name_formats import subdomain_name
from ctrlmgr.kinds.apps.status import (
    REPLICA_SET_COUNTS,
    validate_replicas,
)
from ctrlmgr.kinds.apps.templates import (
    NO_MATCH,
    SPEC,
    TEMPLATE,
    TemplateStrategy,
    fill,
    validate_eternal_template,
    validate_same_selector,
    validate_selected_template,
)
from ctrlmgr.kinds.common_rules import (
    nonnegative_fields,
    sorted_map,
)
from ctrlmgr.kinds.core.pod.defaults import default_template

_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class ReplicaSetStrategy(TemplateStrategy):
    """The strategy of the kind apps/v1 ReplicaSet."""

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the pod template, and default `replicas` to 1."""
        super().default(obj)
        fill(obj["spec"], {"replicas": 1})

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the `spec` of the object."""
        if ctx.subresource == "status":
            return []
        spec = obj.get("spec") or {}
        errors = nonnegative_fields(spec, ("replicas", "minReadySeconds"), SPEC)
        return errors + validate_selected_template(spec, "deployment")

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the selector is unchanged; in a write to `/status`, validate the status instead."""
        if ctx.subresource != "status":
            return validate_same_selector(new, old)
        return validate_replicas(new.get("status") or {}, (*REPLICA_SET_COUNTS, "terminatingReplicas"), _PARTS)


def _long_name(name: str, is_prefix: bool) -> list[str]:
    """Return the errors of a name, with the messages of Kubernetes' declarative validation."""
    return [each.replace("253 characters", "253 bytes") for each in subdomain_name(name, is_prefix)]


class ReplicationControllerStrategy(TemplateStrategy):
    """The strategy of v1 ReplicationControllers.

    A ReplicationController without a selector selects the pods with the labels of its template.
    """

    default_propagation = "Orphan"
    revalidates = 0
    name_check = staticmethod(_long_name)

    def default(self, obj: Unstructured) -> None:
        """Copy labels and selector from the pod template if they are missing."""
        spec = obj.setdefault("spec", {})
        fill(spec, {"replicas": 1})
        if (template := spec.get("template")) is None:
            return
        default_template(template)
        if labels := (template.get("metadata") or {}).get("labels"):
            metadata = metadata_of(obj)
            metadata["labels"] = metadata.get("labels") or dict(labels)
            spec["selector"] = spec.get("selector") or dict(labels)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the `spec` of the object."""
        if ctx.subresource == "status":
            return []
        spec = obj.get("spec") or {}
        selector, template = spec.get("selector") or {}, spec.get("template")
        errors = nonnegative_fields(spec, ("minReadySeconds", "replicas"), SPEC)
        if not selector:
            errors.append(required(SPEC.child("selector")))
        if template is None:
            return [*errors, required(TEMPLATE)]
        labels = (template.get("metadata") or {}).get("labels") or {}
        if not selector.items() <= labels.items():
            errors.append(invalid(TEMPLATE.child("metadata", "labels"), sorted_map(labels), NO_MATCH))
        return errors + validate_eternal_template(spec, "ReplicationController")

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate the `status` of the object."""
        if ctx.subresource != "status":
            return []
        return validate_replicas(new.get("status") or {}, REPLICA_SET_COUNTS, _PARTS)

    def template_warnings(self, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return the warnings for the pod template; in an update, check the old pod template, as in Kubernetes."""
        return super().template_warnings(obj if old is None else old, old)

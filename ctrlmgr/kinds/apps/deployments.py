"""Deployments, ReplicaSets, ReplicationControllers, DaemonSets and pod templates.

Guarantees: defaults, errors and generations are those of Kubernetes' API server. The work of its controllers is not
done here.

Rules come from Kubernetes' `pkg/apis/{apps,core}/v1/defaults.go`, `pkg/apis/{apps,core}/validation/validation.go` and
the strategies in `pkg/registry/{apps,core}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.name_formats import subdomain_name
from ctrlmgr.kinds.apps.status import (
    DEPLOYMENT_COUNTS,
    REPLICA_SET_COUNTS,
    validate_collisions,
    validate_daemons,
    validate_replicas,
)
from ctrlmgr.kinds.apps.templates import (
    NO_MATCH,
    SPEC,
    TEMPLATE,
    TemplateStrategy,
    fill,
    fill_nil,
    validate_eternal_template,
    validate_match,
    validate_same_selector,
    validate_selected_template,
    validate_selector,
)
from ctrlmgr.kinds.common_rules import (
    amount,
    at_most_all,
    int_or_percent,
    nonnegative,
    nonnegative_fields,
    sorted_map,
)
from ctrlmgr.kinds.core.pod.defaults import default_template
from ctrlmgr.kinds.core.pod.validation import validate_template
from ctrlmgr.kinds.core.pod.warnings import pod_warnings

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_ROLLING, _RECREATE, _ON_DELETE = "RollingUpdate", "Recreate", "OnDelete"
_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_STRATEGY = SPEC.child("strategy")
_UPDATE_STRATEGY = SPEC.child("updateStrategy")


def default_rolling_update(strategy: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Set the defaults of an update strategy: a rolling update with `values`."""
    if not strategy.get("type"):
        strategy["type"] = _ROLLING
    if strategy["type"] == _ROLLING:
        if strategy.get("rollingUpdate") is None:
            strategy["rollingUpdate"] = {}
        fill_nil(strategy["rollingUpdate"], values)


def shown_strategy(strategy: Mapping[str, Any]) -> dict[str, Any]:
    """Return an update strategy in the form of Go's struct, for messages."""
    rolling = strategy.get("rollingUpdate")
    shown = rolling and {"MaxUnavailable": rolling.get("maxUnavailable"), "MaxSurge": rolling.get("maxSurge")}
    return {"Type": strategy.get("type") or "", "RollingUpdate": shown}


class DeploymentStrategy(TemplateStrategy):
    """apps/v1 Deployment. Its generation also counts changes of annotations, which its ReplicaSets get too."""

    revalidates = 0
    status_keeps = ("labels",)

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the template and the update strategy."""
        super().default(obj)
        spec = obj["spec"]
        fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
        default_rolling_update(spec.setdefault("strategy", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Increase the generation for a change of annotations."""
        metadata, before = metadata_of(new), old.get("metadata") or {}
        if not ctx.subresource and (metadata.get("annotations") or {}) != (before.get("annotations") or {}):
            metadata["generation"] = (before.get("generation") or 0) + 1

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Check the spec."""
        if ctx.subresource == "status":
            return []
        spec = obj.get("spec") or {}
        errors = nonnegative(spec.get("replicas"), SPEC.child("replicas"))
        errors += validate_selected_template(spec, "deployment")
        errors += _validate_deployment_strategy(spec["strategy"])
        errors += nonnegative_fields(spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), SPEC)
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
            detail = "must be greater than minReadySeconds"
            errors.append(invalid(SPEC.child("progressDeadlineSeconds"), deadline, detail))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Check that the selector is unchanged, or validate the status."""
        if ctx.subresource != "status":
            return validate_same_selector(new, old)
        status = new.get("status") or {}
        errors = validate_replicas(status, DEPLOYMENT_COUNTS, ("updatedReplicas", "readyReplicas", "availableReplicas"))
        return errors + validate_collisions(status, old.get("status") or {})


def _validate_deployment_strategy(strategy: Mapping[str, Any]) -> list[FieldError]:
    kind, path = strategy["type"], _STRATEGY.child("rollingUpdate")
    if kind not in (_RECREATE, _ROLLING):
        return [not_supported(_STRATEGY, shown_strategy(strategy), (_RECREATE, _ROLLING))]
    if kind == _RECREATE:
        detail = f"may not be specified when strategy `type` is '{_RECREATE}'"
        return [] if strategy.get("rollingUpdate") is None else [forbidden(path, detail)]
    rolling = strategy["rollingUpdate"]
    unavailable, surge = _bounds(rolling)
    errors = int_or_percent(unavailable, path.child("maxUnavailable"))
    errors += int_or_percent(surge, path.child("maxSurge"))
    if amount(unavailable) == 0 and amount(surge) == 0:
        errors.append(invalid(path.child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + at_most_all(unavailable, path.child("maxUnavailable"))


def _bounds(rolling: Mapping[str, Any]) -> tuple[int | str, int | str]:
    """Return maxUnavailable and maxSurge; an empty text is not the same as absent."""
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    return 0 if unavailable is None else unavailable, 0 if surge is None else surge


class ReplicaSetStrategy(TemplateStrategy):
    """apps/v1 ReplicaSet."""

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the template, and of replicas to 1."""
        super().default(obj)
        fill(obj["spec"], {"replicas": 1})

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Check the spec."""
        if ctx.subresource == "status":
            return []
        spec = obj.get("spec") or {}
        errors = nonnegative_fields(spec, ("replicas", "minReadySeconds"), SPEC)
        return errors + validate_selected_template(spec, "deployment")

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Check that the selector is unchanged, or validate the status."""
        if ctx.subresource != "status":
            return validate_same_selector(new, old)
        return validate_replicas(new.get("status") or {}, (*REPLICA_SET_COUNTS, "terminatingReplicas"), _PARTS)


def _long_name(name: str, is_prefix: bool) -> list[str]:
    """Return the errors of a name in the wording of declarative validation."""
    return [each.replace("253 characters", "253 bytes") for each in subdomain_name(name, is_prefix)]


class ReplicationControllerStrategy(TemplateStrategy):
    """v1 ReplicationController; without a selector it selects the pods of its template."""

    default_propagation = "Orphan"
    revalidates = 0
    name_check = staticmethod(_long_name)

    def default(self, obj: Unstructured) -> None:
        """Copy missing labels and selector from the template."""
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
        """Check the spec."""
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
        """Check the status."""
        if ctx.subresource != "status":
            return []
        return validate_replicas(new.get("status") or {}, REPLICA_SET_COUNTS, _PARTS)

    def template_warnings(self, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return the warnings for the template; on an update Kubernetes checks the old template."""
        return super().template_warnings(obj if old is None else old, old)


class DaemonSetStrategy(TemplateStrategy):
    """apps/v1 DaemonSet; an annotation counts the changes of its template, as a field of the spec did in the past."""

    warns_of_name = False

    def may_have_changed(self, new: Unstructured, old: Unstructured) -> bool:
        """Return whether the template has changed."""
        return _template_generation(new) != _template_generation(old)

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the template and the update strategy."""
        super().default(obj)
        spec = obj["spec"]
        default_rolling_update(spec.setdefault("updateStrategy", {}), {"maxUnavailable": 1, "maxSurge": 0})
        fill(spec, {"revisionHistoryLimit": 10})

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the first template generation."""
        _count_templates(obj, max(_template_generation(obj), 1))

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Increase the template generation if the template has changed."""
        changed = (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template")
        _count_templates(new, _template_generation(old) + (changed and ctx.subresource != "status"))

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Check the spec."""
        if ctx.subresource == "status":
            return []
        spec = obj.get("spec") or {}
        # A changed selector is reported first, because it must not change.
        errors = [] if ctx.old is None else validate_same_selector(obj, ctx.old)
        # A missing selector is reported as one that selects nothing.
        errors += [] if spec.get("selector") is None else validate_selector(spec, "daemonset")
        errors += validate_match(spec) + validate_eternal_template(spec, "DaemonSet")
        errors += nonnegative(spec.get("minReadySeconds"), SPEC.child("minReadySeconds"))
        errors += _validate_daemon_strategy(spec["updateStrategy"])
        return errors + nonnegative(spec.get("revisionHistoryLimit"), SPEC.child("revisionHistoryLimit"))

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Check the status."""
        if ctx.subresource != "status":
            return []
        status = new.get("status") or {}
        return validate_daemons(status) + validate_collisions(status, old.get("status") or {})


def _template_generation(obj: Unstructured) -> int:
    text = ((obj.get("metadata") or {}).get("annotations") or {}).get(TEMPLATE_GENERATION) or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _count_templates(obj: Unstructured, count: int) -> None:
    metadata = metadata_of(obj)
    metadata["annotations"] = {**(metadata.get("annotations") or {}), TEMPLATE_GENERATION: str(count)}


def _validate_daemon_strategy(strategy: Mapping[str, Any]) -> list[FieldError]:
    kind, path = strategy["type"], _UPDATE_STRATEGY.child("rollingUpdate")
    if kind == _ON_DELETE:
        return []
    if kind != _ROLLING:
        return [not_supported(_UPDATE_STRATEGY, shown_strategy(strategy), (_ROLLING, _ON_DELETE))]
    rolling = strategy["rollingUpdate"]
    unavailable, surge = _bounds(rolling)
    errors: list[FieldError] = []
    for check in (int_or_percent, at_most_all):
        errors += check(unavailable, path.child("maxUnavailable")) + check(surge, path.child("maxSurge"))
    if amount(unavailable) and amount(surge):
        errors.append(invalid(path.child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero"))
    elif not (amount(unavailable) or amount(surge)):
        errors.append(required(path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
    return errors


class PodTemplateStrategy(Strategy):
    """v1 PodTemplate."""

    has_generation = True
    returns_deleted = True
    revalidates = 0

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the template."""
        default_template(obj.setdefault("template", {}))

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Check the template."""
        return validate_template(obj.get("template") or {}, Path("template"))

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return the warnings for a new or changed template."""
        if old is not None and old.get("template") == obj.get("template"):
            return []
        return pod_warnings(obj.get("template") or {}, Path("template"))

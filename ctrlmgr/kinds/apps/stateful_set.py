"""The strategies of StatefulSets, and of the ControllerRevisions that store their templates.

Source: Kubernetes' `pkg/apis/apps/v1/{defaults,conversion}.go`, `pkg/apis/apps/validation/validation.go` and
`pkg/registry/apps/{statefulset,controllerrevision}/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required, tentatively
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.label_validation import validate_labels
from ctrlmgr.engine.validation.name_formats import dns1123_label, label_name
from ctrlmgr.engine.validation.object_meta import IMMUTABLE, validate_annotations
from ctrlmgr.kinds.apps.status import STATEFUL_SET_COUNTS, validate_collisions, validate_replicas
from ctrlmgr.kinds.apps.templates import (
    SPEC,
    TEMPLATE,
    TemplateStrategy,
    fill,
    is_selector_broken,
    shown_selector,
    validate_match,
    validate_runs_for_ever,
    validate_selector,
)
from ctrlmgr.kinds.common_rules import (
    amount,
    at_most_all,
    each_problem,
    int_or_percent,
    nonnegative,
    nonnegative_fields,
)
from ctrlmgr.kinds.core.claim_spec import claim_warnings, validate_claim_spec
from ctrlmgr.kinds.core.pod.annotations import validate_pod_annotations
from ctrlmgr.kinds.core.pod.validation import validate_template
from ctrlmgr.kinds.core.pod.volumes.defaults import default_claim_spec

_encode = msgspec.json.Encoder().encode

_ROLLING, _ON_DELETE = "RollingUpdate", "OnDelete"
_MANAGEMENT = ("OrderedReady", "Parallel")
_RETENTION = ("Retain", "Delete")
_STRATEGY = SPEC.child("updateStrategy")
_ALL_HISTORY = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)
_CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_UNCHANGEABLE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetStrategy(TemplateStrategy):
    """The strategy of the kind apps/v1 StatefulSet."""

    revalidates = 0
    warns_of_name = False
    name_check = staticmethod(label_name)

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the pod template, the volume claim templates, and the update strategy."""
        super().default(obj)
        spec = obj["spec"]
        fill(spec, {"podManagementPolicy": "OrderedReady", "replicas": 1, "revisionHistoryLimit": 10})
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = _ROLLING
            strategy["rollingUpdate"] = strategy.get("rollingUpdate") or {}
        if strategy["type"] == _ROLLING and strategy.get("rollingUpdate") is not None:
            fill(strategy["rollingUpdate"], {"partition": 0})
        retention = spec["persistentVolumeClaimRetentionPolicy"] = (
            spec.get("persistentVolumeClaimRetentionPolicy") or {}
        )
        fill(retention, {"whenDeleted": "Retain", "whenScaled": "Retain"})
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
            default_claim_spec(claim.setdefault("spec", {}))
            claim["status"] = {"phase": "Pending"} | (claim.get("status") or {})

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the `spec` of the object.

        If the stored pod template is already invalid, an update may keep the invalid template.
        """
        if ctx.subresource == "status":
            return []
        before = None if ctx.old is None else ctx.old.get("spec") or {}
        errors = _validate_spec(obj.get("spec") or {}, is_new=before is None)
        if errors and before is not None and tentatively(lambda: _validate_spec(before, is_new=False)):
            errors = _validate_spec(obj.get("spec") or {}, is_new=False, skips_pod=True)
        return errors

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about the pod template, about fractions of bytes, and about an unlimited revision history."""
        if ctx.subresource:
            return []
        found, spec = super().warnings(ctx, obj, old), obj.get("spec") or {}
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            path = SPEC.child("volumeClaimTemplates").at(index)
            found += claim_warnings(claim.get("spec") or {}, path if old is None else path.child("Spec"))
        if (spec.get("revisionHistoryLimit") or 0) < 0:
            found.append(_ALL_HISTORY)
        return found

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that only mutable fields have changed; in a write to `/status`, validate the status instead."""
        if ctx.subresource == "status":
            status = new.get("status") or {}
            parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
            errors = validate_replicas(status, STATEFUL_SET_COUNTS, parts, "status.readyReplicas")
            return errors + validate_collisions(status, old.get("status") or {})
        kept = [{key: value for key, value in each["spec"].items() if key not in _CHANGEABLE} for each in (new, old)]
        return [] if kept[0] == kept[1] else [forbidden(SPEC, _UNCHANGEABLE)]


def _validate_spec(spec: Mapping[str, Any], *, is_new: bool, skips_pod: bool = False) -> list[FieldError]:
    """Validate a StatefulSetSpec.

    Volume claim templates and `serviceName` are immutable, so they are validated only for a new StatefulSet.
    """
    errors = _validate_management(spec.get("podManagementPolicy") or "")
    errors += _validate_strategy(spec["updateStrategy"])
    path = SPEC.child("persistentVolumeClaimRetentionPolicy")
    for field in ("whenDeleted", "whenScaled"):
        policy = (spec.get("persistentVolumeClaimRetentionPolicy") or {}).get(field) or ""
        if policy not in _RETENTION:
            errors.append(not_supported(path.child(field), policy, _RETENTION))
    errors += _validate_claims(spec) if is_new else []
    errors += nonnegative_fields(spec, ("replicas", "minReadySeconds"), SPEC)
    errors += nonnegative((spec.get("ordinals") or {}).get("start"), SPEC.child("ordinals.start"))
    if is_new and (service := spec.get("serviceName") or ""):
        errors += each_problem(dns1123_label, service, SPEC.child("serviceName"))
    errors += validate_selector(spec, "statefulset")
    if is_selector_broken(spec):
        errors.append(invalid(SPEC.child("selector"), shown_selector(spec.get("selector")), ""))
    else:
        errors += validate_match(spec) + _validate_template(spec, skips_pod=skips_pod)
    return errors + validate_runs_for_ever(spec.get("template") or {}, "StatefulSet")


def _validate_claims(spec: Mapping[str, Any]) -> list[FieldError]:
    path = SPEC.child("volumeClaimTemplates")
    errors: list[FieldError] = []
    for at, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        errors += validate_claim_spec(claim.get("spec") or {}, path.at(at).child("spec"))
    return errors


def _validate_management(policy: str) -> list[FieldError]:
    if policy in _MANAGEMENT:
        return []
    return [invalid(SPEC.child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'")]


def _validate_strategy(strategy: Mapping[str, Any]) -> list[FieldError]:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    path = _STRATEGY.child("rollingUpdate")
    shown = rolling and {"Partition": rolling.get("partition") or 0, "MaxUnavailable": rolling.get("maxUnavailable")}
    if kind == _ON_DELETE:
        return [] if rolling is None else [invalid(path, shown, f"only allowed for updateStrategy '{_ROLLING}'")]
    if kind != _ROLLING:
        detail = f"must be '{_ROLLING}' or '{_ON_DELETE}'"
        return [invalid(_STRATEGY, {"Type": kind, "RollingUpdate": shown}, detail)]
    errors = nonnegative((rolling or {}).get("partition"), path.child("partition"))
    unavailable = (rolling or {}).get("maxUnavailable")
    if unavailable is not None:
        below = path.child("maxUnavailable")
        errors += int_or_percent(unavailable, below)
        if amount(unavailable) == 0:
            errors.append(invalid(below, unavailable, "cannot be 0"))
        errors += at_most_all(unavailable, below)
    return errors


def _validate_template(spec: Mapping[str, Any], *, skips_pod: bool) -> list[FieldError]:
    """Validate the pod template in the form that the pods will have.

    If `skips_pod` is set, only some parts are validated.
    """
    template = spec.get("template") or {}
    metadata = template.get("metadata") or {}
    annotations, path = metadata.get("annotations") or {}, TEMPLATE.child("annotations")
    return [
        *([] if skips_pod else validate_template(_completed(spec), TEMPLATE)),
        *validate_labels(metadata.get("labels") or {}, TEMPLATE.child("labels")),  # validated twice, as in Kubernetes
        *validate_annotations(annotations, path),
        *validate_pod_annotations(annotations, template.get("spec") or {}, path),
    ]


def _completed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod template with the fields that the controller adds.

    The controller sets the volumes for claims, the hostname and the subdomain. The volume of a claim replaces a volume
    of the same name in the template (`volumesToAddForTemplates`).
    """
    template = spec.get("template") or {}
    names = dict.fromkeys(
        (claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()
    )
    pod = template.get("spec") or {}
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    volumes = [each for each in pod.get("volumes") or () if (each.get("name") or "") not in names]
    own = {field: value for field, value in pod.items() if field not in ("hostname", "subdomain")}
    return {**template, "spec": {**own, "volumes": [*claims, *volumes]}}


class ControllerRevisionStrategy(Strategy):
    """The strategy of the kind apps/v1 ControllerRevision."""

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate that the data of a new ControllerRevision is an object, and that an update does not change the data.

        Kubernetes compares the bytes of the data, so a different order of keys is a change.
        """
        errors = nonnegative(obj.get("revision"), Path("revision"))
        data = obj.get("data")
        if ctx.old is not None:
            is_kept = _encode(data) == _encode(ctx.old.get("data"))
            return errors if is_kept else [*errors, invalid(Path("data"), data, IMMUTABLE)]
        if data is None:
            errors.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            errors.append(required("data", "data must be a valid JSON object"))
        return errors

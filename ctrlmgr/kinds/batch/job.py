"""The strategy of Jobs: unique labels identify the pods of a Job, and the pod template is immutable.

Source: Kubernetes' `pkg/apis/batch/v1/defaults.go`, `pkg/apis/batch/validation/validation.go`,
`pkg/api/job/warnings.go` and `pkg/registry/batch/job/strategy.go`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation.label_validation import validate_label_selector
from ctrlmgr.engine.validation.name_formats import dns1123_label
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.apps.templates import (
    SPEC,
    TEMPLATE,
    TemplateStrategy,
    fill,
    fill_nil,
    shown_selector,
    validate_match,
)
from ctrlmgr.kinds.batch.job_spec import INDEXED, NON_INDEXED, validate_job_spec
from ctrlmgr.kinds.batch.job_status import has_condition, validate_job_status
from ctrlmgr.kinds.common_rules import immutable, sorted_map
from ctrlmgr.kinds.core.pod.warnings import pod_warnings
from ctrlmgr.kinds.label_selectors import selector_of
from ctrlmgr.kinds.spec_difference import shown

JOB_NAME = "batch.kubernetes.io/job-name"
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"

_LEGACY_JOB_NAME, _LEGACY_CONTROLLER_UID = "job-name", "controller-uid"
_UNLIMITED = (1 << 31) - 1
_IMMUTABLE = {
    "completionMode": "",
    "podFailurePolicy": "PodFailurePolicy",
    "backoffLimitPerIndex": "",
    "managedBy": "",
    "successPolicy": "SuccessPolicy",
}
"""The immutable fields of a JobSpec. If a field is a struct, the name of its Go type is also given."""
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")
_MANY, _MANY_AT_ONCE = 100_000, 10_000
_TOO_MANY_TO_TRACK = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)


def default_failure_policy(spec: dict[str, Any]) -> None:
    """Set the default status of the pod conditions in a podFailurePolicy; the default status is True."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            fill(pattern, {"status": "True"})


def job_warnings(spec: Mapping[str, Any], path: Path) -> list[str]:
    """Return the warnings for the JobSpec at `path`."""
    many = (spec.get("completions") or 0) > _MANY and (spec.get("parallelism") or 0) > _MANY_AT_ONCE
    found = [f"{path}: {_TOO_MANY_TO_TRACK}"] if many and spec.get("completionMode") == INDEXED else []
    return found + pod_warnings(spec.get("template") or {}, path.child("template"))


class JobStrategy(TemplateStrategy):
    """The strategy of the kind batch/v1 Job."""

    default_propagation = "Orphan"
    default_propagation_warnings = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
        "or set propagationPolicy=Orphan to suppress this warning",
    )
    fields = ("status.successful",)

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the pod template and the counts.

        A Job without labels gets the labels of its template. If labels are later added to the Job, they also appear in
        the template, because both have the same map in Kubernetes.
        """
        super().default(obj)
        spec = obj["spec"]
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        by_index = spec.get("backoffLimitPerIndex") is not None
        fill(spec, {"parallelism": 1, "backoffLimit": _UNLIMITED if by_index else 6})
        fill_nil(spec, {"completionMode": NON_INDEXED, "suspend": False, "manualSelector": False})
        replaced = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
        fill_nil(spec, {"podReplacementPolicy": replaced})
        default_failure_policy(spec)
        _default_labels(obj)

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Generate the labels and the selector of a Job, unless `manualSelector` is set."""
        if not obj["spec"].get("manualSelector"):
            _generate_selector(obj)

    def canonicalize(self, obj: Unstructured) -> None:
        """If a Job has no labels, copy the labels of its pod template to the Job.

        Kubernetes copies the labels when it reads a stored Job, because reading sets defaults again. Kubernetes
        validates the stored form of the Job, which has these labels.
        """
        _default_labels(obj)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the spec, and that the selector matches the Job's pods, and that the pods can have valid names."""
        if ctx.subresource == "status":
            return []
        spec = obj.get("spec") or {}
        return _validate_generated(obj, ctx.old) + _validate_spec(spec) + _validate_hostnames(obj, spec)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate the whole spec, and that immutable fields are unchanged, as in Kubernetes.

        In a write to `/status`, validate the status instead.
        """
        if ctx.subresource == "status":
            return validate_job_status(new, old)
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        errors = _validate_spec(spec) + _validate_completions(spec, before)
        if spec.get("selector") != before.get("selector"):
            errors.append(invalid(SPEC.child("selector"), shown_selector(spec.get("selector")), IMMUTABLE))
        errors += _validate_template_update(spec.get("template") or {}, old)
        for field, type_ in _IMMUTABLE.items():
            errors += _immutable(type_, spec.get(field), before.get(field), SPEC.child(field))
        return errors

    def template_warnings(self, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about the pod template, and about too many completion indexes."""
        return job_warnings(obj.get("spec") or {}, SPEC)

    def field_refusal(self, field: str) -> str:
        """Return the error message for a field selector that the group batch does not support."""
        return f'field label "{field}" not supported for Job'

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the number of succeeded pods of a Job."""
        return {"status.successful": str((obj.to_dict().get("status") or {}).get("succeeded") or 0)}


def _default_labels(obj: Unstructured) -> None:
    metadata, labels = metadata_of(obj), _labels_of(obj["spec"])
    if labels and not metadata.get("labels"):
        metadata["labels"] = labels


def _generate_selector(obj: Unstructured) -> None:
    metadata, spec = metadata_of(obj), obj["spec"]
    labels: dict[str, str] = metadata_of(spec["template"]).setdefault("labels", {})
    for label in (_LEGACY_JOB_NAME, JOB_NAME):
        labels.setdefault(label, metadata.get("name") or "")
    for label in (_LEGACY_CONTROLLER_UID, CONTROLLER_UID):
        labels.setdefault(label, metadata["uid"])
    selector = spec["selector"] = spec.get("selector") or {}
    selector.setdefault("matchLabels", {}).setdefault(CONTROLLER_UID, metadata["uid"])


def _validate_generated(obj: Unstructured, old: Unstructured | None) -> list[FieldError]:
    """Validate that the generated labels and selector are unchanged.

    If there is an old Job, its labels and its selector must be equal to the new ones.
    """
    metadata, spec = metadata_of(obj), obj.get("spec") or {}
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    uid, name = metadata.get("uid") or "", metadata.get("name") or ""
    expected = {_LEGACY_CONTROLLER_UID: uid, _LEGACY_JOB_NAME: name}
    if old is None or _labels_of(old.get("spec") or {}).keys() >= {JOB_NAME, CONTROLLER_UID}:
        expected |= {CONTROLLER_UID: uid, JOB_NAME: name}
    labels, path = _labels_of(spec), TEMPLATE.child("metadata", "labels")
    errors: list[FieldError] = []
    for label, value in expected.items():
        if label not in labels:
            errors.append(required(path.key(label), f"must be '{value}'"))
        elif labels[label] != value:
            errors.append(invalid(path.key(label), sorted_map(labels), f"must be '{value}'"))
    selector = selector_of(spec["selector"])
    if selector is not None and not selector.matches(expected):
        detail = "`selector` not auto-generated"
        errors.append(invalid(SPEC.child("selector"), shown_selector(spec["selector"]), detail))
    return errors


def _labels_of(spec: Mapping[str, Any]) -> dict[str, str]:
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}


def _validate_spec(spec: Mapping[str, Any]) -> list[FieldError]:
    selector, path = spec.get("selector"), SPEC.child("selector")
    errors = validate_job_spec(spec, SPEC)
    if selector is None:
        errors.append(required(path))
    elif problems := validate_label_selector(selector, path):
        return errors + problems
    return errors + validate_match(spec)


def _validate_hostnames(obj: Unstructured, spec: Mapping[str, Any]) -> list[FieldError]:
    name, completions = metadata_of(obj).get("name") or "", spec.get("completions") or 0
    longest = f"{name}-{completions - 1}"
    if spec.get("completionMode") != INDEXED or completions <= 0 or not dns1123_label(longest):
        return []
    detail = f"will not able to create pod with invalid DNS label: {longest}"
    return [invalid(Path("metadata.name"), name, detail)]


def _validate_completions(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[FieldError]:
    """Validate that completions are unchanged.

    Completions of an indexed Job may change together with its parallelism (KEP-3715).
    """
    completions, path = new.get("completions"), SPEC.child("completions")
    if new.get("completionMode") != INDEXED:
        return immutable(completions, old.get("completions"), path)
    if completions in (None, old.get("completions"), new.get("parallelism")):
        return []
    return [invalid(path, completions, "can only be modified in tandem with spec.parallelism")]


def _validate_template_update(template: Mapping[str, Any], old: Unstructured) -> list[FieldError]:
    before = (old.get("spec") or {}).get("template") or {}
    if not _may_be_rescheduled(old):
        return _immutable("PodTemplateSpec", template, before, TEMPLATE)
    kept = copy.deepcopy(before)
    _take_scheduling(kept.setdefault("spec", {}), template.get("spec") or {})
    return _immutable("PodSpec", template.get("spec"), kept["spec"], TEMPLATE.child("spec"))


def _immutable(type_: str, new: Any, old: Any, path: Path) -> list[FieldError]:
    """Return an error if a field of a JobSpec has changed; the message shows structs in Go's print format."""
    if new == old:
        return []
    return [invalid(path, shown(type_, new) if type_ and new is not None else new, IMMUTABLE)]


def _may_be_rescheduled(job: Unstructured) -> bool:
    """Return whether a Job is suspended and has no running pods.

    The template of a suspended Job without running pods may be changed (KEP-2926, KEP-5440).
    """
    status = job.get("status") or {}
    if not (job.get("spec") or {}).get("suspend") or status.get("active"):
        return False
    return status.get("startTime") is None or has_condition(status, "Suspended")


def _take_scheduling(kept: dict[str, Any], spec: Mapping[str, Any]) -> None:
    for field in _SCHEDULING:
        _take(kept, spec, field)
    _take_node_affinity(kept, spec)
    for field in ("containers", "initContainers"):
        ours, theirs = kept.get(field) or [], spec.get(field) or []
        if [each.get("name") for each in ours] == [each.get("name") for each in theirs]:
            for own, container in zip(ours, theirs, strict=True):
                _take(own, container, "resources")


def _take_node_affinity(kept: dict[str, Any], spec: Mapping[str, Any]) -> None:
    wanted = spec.get("affinity")
    affinity = dict(kept.get("affinity") or {})
    _take(affinity, wanted or {}, "nodeAffinity")
    if affinity or wanted is not None:
        kept["affinity"] = affinity
    else:
        kept.pop("affinity", None)


def _take(kept: dict[str, Any], given: Mapping[str, Any], field: str) -> None:
    if field in given:
        kept[field] = given[field]
    else:
        kept.pop(field, None)

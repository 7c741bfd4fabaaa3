"""Validates the status of a Job and its changes; a finished Job never becomes unfinished.

Guarantees: rules are applied only to changed fields. Therefore a status that already violates a rule can still be
updated.

Source: Kubernetes' `pkg/apis/batch/validation/validation.go`, `ValidateJobUpdateStatus`, and
`pkg/registry/batch/job/strategy.go`, `getStatusValidationOptions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, duplicate, invalid, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.apps.status import STATUS
from ctrlmgr.kinds.batch.job_indexes import common_index, count_indexes
from ctrlmgr.kinds.batch.job_spec import INDEXED
from ctrlmgr.kinds.common_rules import malformed, nonnegative_fields

CONDITIONS = STATUS.child("conditions")
_SUCCESS, _FAILURE = "SuccessCriteriaMet", "FailureTarget"
_CONFLICTS = (
    (("Complete", "Failed"), "cannot set Complete=True and Failed=true conditions"),
    (("Complete", _FAILURE), "cannot set Complete=True and FailureTarget=true conditions"),
)


def has_condition(status: Mapping[str, Any], type_: str) -> bool:
    """Return whether the condition of this type has the status True."""
    return any(each.get("type") == type_ and each.get("status") == "True" for each in status.get("conditions") or ())


class _Change:
    """The old and the new status of a Job."""

    def __init__(self, new: Unstructured, old: Unstructured) -> None:
        self.spec: Mapping[str, Any] = new.get("spec") or {}
        self.new: Mapping[str, Any] = new.get("status") or {}
        self.old: Mapping[str, Any] = old.get("status") or {}

    def touches(self, *names: str) -> bool:
        """Return whether a status field, or the condition of a type, has changed."""
        return any(
            has_condition(self.new, name) != has_condition(self.old, name)
            if name[0].isupper()
            else self.new.get(name) != self.old.get(name)
            for name in names
        )

    @property
    def is_finished(self) -> bool:
        return has_condition(self.new, "Complete") or has_condition(self.new, "Failed")

    @property
    def finishes(self) -> bool:
        """Return whether the write finishes the Job, or changes a finished Job back to an unfinished Job."""
        was = has_condition(self.old, "Complete") or has_condition(self.old, "Failed")
        return self.is_finished != was


def validate_job_status(new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Validate a write to a Job's `/status`."""
    change = _Change(new, old)
    errors = nonnegative_fields(change.new, ("active", "succeeded", "failed", "ready", "terminating"), STATUS)
    for check in (_uncounted, _conditions, _times, _finish, _indexes, _success, _decrease, _reversal):
        errors += check(change)
    return errors


def _uncounted(change: _Change) -> list[FieldError]:
    """Validate that no pod is counted twice."""
    pods = change.new.get("uncountedTerminatedPods") or {}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(field) or ()):
            at = STATUS.child("uncountedTerminatedPods", field).at(index)
            if not uid:
                errors.append(invalid(at, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(at, uid))
            seen.add(uid)
    return errors


def _conditions(change: _Change) -> list[FieldError]:
    """Validate that the Job has not both succeeded and failed."""
    return [
        malformed(CONDITIONS, detail)
        for pair, detail in _CONFLICTS
        if change.touches(*pair) and all(has_condition(change.new, each) for each in pair)
    ]


def _times(change: _Change) -> list[FieldError]:
    started, completed = change.new.get("startTime"), change.new.get("completionTime")
    is_complete, path = has_condition(change.new, "Complete"), STATUS.child("completionTime")
    errors: list[FieldError] = []
    if change.touches("Complete", "completionTime"):
        if completed is not None and not is_complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            errors.append(invalid(path, completed, detail))
        if completed is None and is_complete:
            errors.append(required(path, "completionTime is required for Complete jobs"))
    # The timestamps can be compared as text, because both are in UTC and in whole seconds.
    ordered = started is None or completed is None or completed >= started
    if change.touches("startTime", "completionTime") and not ordered:
        errors.append(invalid(path, completed, "must be equal to or after `startTime`"))
    return errors


def _finish(change: _Change) -> list[FieldError]:
    """Validate that a finished Job announced its result in an earlier write, and has no active pods."""
    status = change.new
    errors: list[FieldError] = []
    for finish, criterion in (("Failed", _FAILURE), ("Complete", _SUCCESS)):
        about = ("failedIndexes",) if finish == "Failed" else (_SUCCESS,)
        unannounced = has_condition(status, finish) and not has_condition(status, criterion)
        if change.touches(finish, *about) and unannounced:
            detail = f"cannot set {finish}=True condition without the {criterion}=true condition"
            errors.append(malformed(CONDITIONS, detail))
    if not change.is_finished:
        return errors
    errors += _no_more(change, "active")
    if (change.finishes or change.touches("startTime")) and status.get("startTime") is None:
        errors.append(required(STATUS.child("startTime"), "startTime is required for finished job"))
    pods = status.get("uncountedTerminatedPods") or {}
    if (change.finishes or change.touches("uncountedTerminatedPods")) and any(pods.values()):
        shown = {"Succeeded": pods.get("succeeded"), "Failed": pods.get("failed")}
        detail = "must be empty for finished job"
        errors.append(invalid(STATUS.child("uncountedTerminatedPods"), shown, detail))
    return errors + _no_more(change, "terminating")


def _no_more(change: _Change, field: str) -> list[FieldError]:
    count = change.new.get(field) or 0
    if count <= 0 or not (change.finishes or change.touches(field)):
        return []
    return [invalid(STATUS.child(field), count, f"{field}>0 is invalid for finished job")]


def _indexes(change: _Change) -> list[FieldError]:
    status, completions = change.new, change.spec.get("completions")
    completed, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    by_index = change.spec.get("backoffLimitPerIndex") is not None
    errors: list[FieldError] = []
    if change.touches("completedIndexes"):
        errors += _validate_list("completedIndexes", completed, completions)
        if completed and change.spec.get("completionMode") != INDEXED:
            detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
            errors.append(invalid(STATUS.child("completedIndexes"), completed, detail))
    path = STATUS.child("failedIndexes")
    if change.touches("failedIndexes") and failed is not None:
        errors += _validate_list("failedIndexes", failed, completions if by_index else None)
        if not by_index:
            detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            errors.append(invalid(path, failed, detail))
    if change.touches("failedIndexes", "completedIndexes") and completions is not None and failed is not None:
        common = common_index(completed, failed, completions)
        if common is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {common}"
            errors.append(invalid(path, failed, detail))
    ready, active = status.get("ready"), status.get("active") or 0
    if change.touches("ready", "active") and ready is not None and ready > active:
        errors.append(invalid(STATUS.child("ready"), ready, "cannot set more ready pods than active"))
    return errors


def _validate_list(field: str, indexes: str, completions: int | None) -> list[FieldError]:
    try:
        count_indexes(indexes if completions is not None else "", completions or 0)
    except ValueError as problem:
        return [invalid(STATUS.child(field), indexes, f"error parsing {field}: {problem}")]
    return []


def _success(change: _Change) -> list[FieldError]:
    """Validate that a Job does not fail after it has met its success criteria."""
    if not has_condition(change.new, _SUCCESS):
        if change.spec.get("successPolicy") is None or not has_condition(change.new, "Complete"):
            return []
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        return [malformed(CONDITIONS, detail)]
    failures = [each for each in ("Failed", _FAILURE) if has_condition(change.new, each)]
    return [malformed(CONDITIONS, f"cannot set {_SUCCESS}=True and {each}=true conditions") for each in failures]


def _decrease(change: _Change) -> list[FieldError]:
    """Validate that the counts in a Job's status do not decrease.

    The number of succeeded pods of an indexed Job may decrease together with its completions.
    """
    spec = change.spec
    shrinks = spec.get("completionMode") == INDEXED and spec.get("completions") == spec.get("parallelism")
    errors = [
        malformed(CONDITIONS, f"cannot disable the terminal {type_}=True condition")
        for type_ in ("Failed", "Complete", _FAILURE)
        if has_condition(change.old, type_) and not has_condition(change.new, type_)
    ]
    for field in ("failed",) if shrinks else ("failed", "succeeded"):
        count = change.new.get(field) or 0
        if count < (change.old.get(field) or 0):
            errors.append(invalid(STATUS.child(field), count, f"cannot decrease the {field} counter"))
    return errors


def _reversal(change: _Change) -> list[FieldError]:
    """Validate that an update does not remove the start time, the completion time or the success of a Job."""
    new, old = change.new, change.old
    errors: list[FieldError] = []
    completed = new.get("completionTime")
    if completed is not None and old.get("completionTime") not in (None, completed):
        errors.append(invalid(STATUS.child("completionTime"), completed, IMMUTABLE))
    restarts = old.get("startTime") is not None and change.touches("startTime")
    if restarts and not change.spec.get("suspend"):
        detail = "field is immutable for unsuspended job once set"
        errors.append(invalid(STATUS.child("startTime"), new.get("startTime"), detail))
    was_met, is_met = has_condition(old, _SUCCESS), has_condition(new, _SUCCESS)
    if was_met and not is_met:
        errors.append(malformed(CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition"))
    if has_condition(old, "Complete") and is_met and not was_met:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(malformed(CONDITIONS, detail))
    return errors

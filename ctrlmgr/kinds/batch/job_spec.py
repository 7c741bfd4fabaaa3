"""Validates the spec of a Job, or of the Job template of a CronJob.

Source: Kubernetes' `pkg/apis/batch/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported, required, too_long, too_many
from ctrlmgr.api.unstructured import repeated
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_name
from ctrlmgr.golang.go_text import quote
from ctrlmgr.kinds.batch.job_indexes import count_indexes
from ctrlmgr.kinds.common_rules import domain_path, malformed, nonnegative, nonnegative_fields
from ctrlmgr.kinds.core.pod.validation import validate_template

INDEXED, NON_INDEXED = "Indexed", "NonIndexed"

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MOST = 100_000
"""The maximum of `parallelism` and of the number of failed indexes. For a Job with a backoff limit per index, the value
is also the maximum of `completions`.
"""
_MOST_OF_MANY = 10_000
"""The maximum of `parallelism` and of the number of failed indexes for a Job whose `completions` exceed the limit
above.
"""
_MOST_RULES = 20
_MOST_EXIT_CODES = 255
_LONGEST_MANAGER = 63
_LONGEST_INDEXES = 64 * 1024
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_NEEDS_INDEXES = "requires indexed completion mode"


def validate_job_spec(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate a JobSpec, except its selector."""
    errors = nonnegative_fields(spec, _COUNTS, path)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        errors += domain_path(manager, path.child("managedBy"))
        if name_formats.length(manager) > _LONGEST_MANAGER:
            errors.append(too_long(path.child("managedBy"), _LONGEST_MANAGER))
    mode = spec.get("completionMode")
    if mode not in (None, NON_INDEXED, INDEXED):
        errors.append(not_supported(path.child("completionMode"), mode, (NON_INDEXED, INDEXED)))
    if mode == INDEXED:
        errors += _validate_indexed(spec, path)
    if mode in (None, NON_INDEXED):
        given = [field for field in ("backoffLimitPerIndex", "maxFailedIndexes") if spec.get(field) is not None]
        errors += [invalid(path.child(field), spec[field], _NEEDS_INDEXES) for field in given]
    errors += _validate_policies(spec, path)
    errors += validate_template(spec.get("template") or {}, path.child("template"))
    return errors + _validate_restart_policy(spec, path.child("template", "spec", "restartPolicy"))


def _validate_indexed(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    completions, parallelism, failed = (spec.get(each) for each in ("completions", "parallelism", "maxFailedIndexes"))
    errors: list[FieldError] = []
    if completions is None:
        errors.append(required(path.child("completions"), f"when completion mode is {INDEXED}"))
    if parallelism is not None and parallelism > _MOST:
        detail = f"must be less than or equal to {_MOST} when completion mode is {INDEXED}"
        errors.append(invalid(path.child("parallelism"), parallelism, detail))
    if failed is not None and completions is not None and failed > completions:
        errors.append(invalid(path.child("maxFailedIndexes"), failed, "must be less than or equal to completions"))
    if failed is not None and failed > _MOST:
        errors.append(invalid(path.child("maxFailedIndexes"), failed, f"must be less than or equal to {_MOST}"))
    if completions is None or completions <= _MOST or spec.get("backoffLimitPerIndex") is None:
        return errors
    if failed is None:
        errors.append(required(path.child("maxFailedIndexes"), f"must be specified when completions is above {_MOST}"))
    for field in ("parallelism", "maxFailedIndexes"):
        if (count := spec.get(field)) is not None and count > _MOST_OF_MANY:
            limit = f"must be less than or equal to {_MOST_OF_MANY} when completions are above {_MOST}"
            errors.append(invalid(path.child(field), count, f"{limit} and used with backoff limit per index"))
    return errors


def _validate_policies(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    failure, success = spec.get("podFailurePolicy"), spec.get("successPolicy")
    errors = [] if failure is None else _validate_failure_policy(failure, spec, path.child("podFailurePolicy"))
    if success is not None and spec.get("completionMode") != INDEXED:
        errors.append(invalid(path.child("successPolicy"), _shown_success(success), _NEEDS_INDEXES))
    elif success is not None:
        errors += _validate_success_policy(success, spec.get("completions"), path.child("successPolicy"))
    replacement, below = spec.get("podReplacementPolicy"), path.child("podReplacementPolicy")
    allowed = _REPLACEMENTS if failure is None else _REPLACEMENTS[:1]
    if replacement is not None and replacement not in allowed:
        errors.append(not_supported(below, replacement, allowed))
    return errors


def _shown_success(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return a success policy for error messages, in the format in which Go prints its struct."""
    rules = policy.get("rules")
    shown = [{f"{field[0].upper()}{field[1:]}": rule.get(field) for field in _SUCCESS_FIELDS} for rule in rules or ()]
    return {"Rules": shown if rules is not None else None}


_SUCCESS_FIELDS = ("succeededIndexes", "succeededCount")


def _validate_restart_policy(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") or ""
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _validate_failure_policy(policy: Mapping[str, Any], spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    rules, below = policy.get("rules") or (), path.child("rules")
    errors = [too_many(below, len(rules), _MOST_RULES)] if len(rules) > _MOST_RULES else []
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {each.get("name") for each in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ()))}
    for index, rule in enumerate(rules):
        errors += _validate_failure_rule(rule, spec, containers, below.at(index))
    return errors


def _one_of(value: str, allowed: Sequence[str], path: Path) -> list[FieldError]:
    if value in allowed:
        return []
    listed = " ".join(map(quote, allowed))
    return [not_supported(path, value, allowed) if value else required(path, f"valid values: [{listed}]")]


def _validate_failure_rule(
    rule: Mapping[str, Any], spec: Mapping[str, Any], containers: Iterable[Any], path: Path
) -> list[FieldError]:
    action, codes, conditions = rule.get("action") or "", rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    errors = _one_of(action, _ACTIONS, path.child("action"))
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(invalid(path.child("action"), action, "requires the backoffLimitPerIndex to be set"))
    if codes is not None:
        errors += _validate_exit_codes(codes, containers, path.child("onExitCodes"))
    if len(conditions) > _MOST_RULES:
        errors.append(too_many(path.child("onPodConditions"), len(conditions), _MOST_RULES))
    for index, pattern in enumerate(conditions):
        at = path.child("onPodConditions").at(index)
        errors += validate_label_name(pattern.get("type") or "", at.child("type"))
        errors += _one_of(pattern.get("status") or "", _STATUSES, at.child("status"))
    if codes is not None and conditions:
        errors.append(malformed(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not conditions:
        errors.append(malformed(path, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def _validate_exit_codes(requirement: Mapping[str, Any], containers: Iterable[Any], path: Path) -> list[FieldError]:
    operator, values = requirement.get("operator") or "", requirement.get("values")
    errors = _one_of(operator, _OPERATORS, path.child("operator"))
    if (container := requirement.get("containerName")) is not None and container not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(path.child("containerName"), container, detail))
    below = path.child("values")
    if not values:
        errors.append(invalid(below, values, "at least one value is required"))
    elif len(values) > _MOST_EXIT_CODES:
        errors.append(too_many(below, len(values), _MOST_EXIT_CODES))
    values = values or []
    again = repeated(values)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(below.at(index), value, "must not be 0 for the In operator"))
        if index in again:
            errors.append(duplicate(below.at(index), value))
    return errors if values == sorted(values) else [*errors, invalid(below, values, "must be ordered")]


def _validate_success_policy(policy: Mapping[str, Any], completions: int | None, path: Path) -> list[FieldError]:
    rules, below = policy.get("rules") or (), path.child("rules")
    errors: list[FieldError] = []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(below, detail))
    if len(rules) > _MOST_RULES:
        errors.append(too_many(below, len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        errors += _validate_success_rule(rule, completions or 0, below.at(index))
    return errors


def _validate_success_rule(rule: Mapping[str, Any], completions: int, path: Path) -> list[FieldError]:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    errors: list[FieldError] = []
    if indexes is None and count is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        below = path.child("succeededIndexes")
        if len(indexes) > _LONGEST_INDEXES:
            errors.append(too_long(below, _LONGEST_INDEXES))
        try:
            total = count_indexes(indexes, completions)
        except ValueError as problem:
            errors.append(invalid(below, indexes, f"error parsing succeededIndexes: {problem}"))
    if count is None:
        return errors
    below = path.child("succeededCount")
    errors += nonnegative(count, below)
    limits = [(completions, "the number of specified completions")]
    if indexes is not None:
        limits.append((total, "the number of indexes in the specified succeededIndexes field"))
    exceeded = [f"must be less than or equal to {limit} ({what})" for limit, what in limits if count > limit]
    return errors + [invalid(below, count, detail) for detail in exceeded]

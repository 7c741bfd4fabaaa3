"""Rules that the validation of many kinds is made of: what is not negative, what may not change, what is a percentage.

Guarantees: `same` says of two values what Go's `apiequality.Semantic.DeepEqual` says of the structs they stand for:
that a field is absent means the same as that it has Go's zero value, except where the field is a pointer.

Rules come from apimachinery's `pkg/api/validation/objectmeta.go` and `pkg/api/equality`, and from Kubernetes'
`pkg/apis/apps/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.resources.validation import names

NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"

_POINTERS = frozenset(
    (
        "activeDeadlineSeconds",
        "allowPrivilegeEscalation",
        "automountServiceAccountToken",
        "averageUtilization",
        "backoffLimit",
        "backoffLimitPerIndex",
        "completions",
        "defaultMode",
        "enableServiceLinks",
        "endPort",
        "expirationSeconds",
        "failedJobsHistoryLimit",
        "fsGroup",
        "hostProcess",
        "hostUsers",
        "hostnameOverride",
        "ingressClassName",
        "localhostProfile",
        "manualSelector",
        "maxFailedIndexes",
        "maxSurge",
        "maxUnavailable",
        "minAvailable",
        "minDomains",
        "minReplicas",
        "mode",
        "optional",
        "parallelism",
        "partition",
        "priority",
        "privileged",
        "progressDeadlineSeconds",
        "readOnlyRootFilesystem",
        "replicas",
        "revisionHistoryLimit",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "runtimeClassName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "startingDeadlineSeconds",
        "storageClassName",
        "succeededCount",
        "successfulJobsHistoryLimit",
        "suspend",
        "terminationGracePeriodSeconds",
        "timeZone",
        "tolerationSeconds",
        "ttlSecondsAfterFinished",
        "volumeAttributesClassName",
    )
)
"""Fields that are pointers to scalars wherever they occur: for these a zero is not the same as nothing."""


def nonnegative(value: int | None, path: Path) -> list[FieldError]:
    """Check a number that may be absent, or zero."""
    return [invalid(path, value, NEGATIVE)] if value is not None and value < 0 else []


def nonnegative_fields(owner: Mapping[str, Any], fields: Iterable[str], path: Path) -> list[FieldError]:
    """Check several numbers of one object."""
    return [error for field in fields for error in nonnegative(owner.get(field), path.child(field))]


def each_problem(check: Callable[[str], list[str]], value: str, path: Path) -> list[FieldError]:
    """Return what `check` (one of `validation.names`) finds wrong with `value`."""
    return [invalid(path, value, problem) for problem in check(value)]


def immutable(new: Any, old: Any, path: Path) -> list[FieldError]:
    """Check that a field has not changed."""
    return [] if same(new, old) else [invalid(path, new, IMMUTABLE)]


def same(new: Any, old: Any) -> bool:
    """Say whether two values mean the same; see the module's guarantees."""
    if new == old:
        return True
    if isinstance(new, dict) and isinstance(old, dict):
        return all(_same_field(key, new.get(key), old.get(key)) for key in new.keys() | old.keys())
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(same, new, old))
    return not isinstance(new or old, (bool, int, str)) and not new and not old


def _same_field(key: str, new: Any, old: Any) -> bool:
    if new is None or old is None:
        present = old if new is None else new
        return not present and (key not in _POINTERS or present is None)
    return same(new, old)


def int_or_percent(value: int | str, path: Path) -> list[FieldError]:
    """Check a number that is not negative, or a percentage."""
    if isinstance(value, str):
        return each_problem(names.percent, value, path)
    return nonnegative(value, path)


def at_most_all(value: int | str, path: Path) -> list[FieldError]:
    """Check that a percentage is not above 100 %."""
    share = percentage(value)
    return [invalid(path, value, "must not be greater than 100%")] if share is not None and share > 100 else []


def percentage(value: int | str) -> int | None:
    """Return the number of a percentage, None if `value` is none."""
    return int(value[:-1]) if isinstance(value, str) and not names.percent(value) and len(value) < 20 else None


def amount(value: int | str | None) -> int:
    """Return the number in an int-or-percent; 0 for what is neither, as Go's `IntValue` does."""
    if isinstance(value, int):
        return value
    return percentage(value or "") or 0


def sorted_map(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a map as Go shows it in messages: by key; None for nil."""
    return dict(sorted(values.items())) if values else None

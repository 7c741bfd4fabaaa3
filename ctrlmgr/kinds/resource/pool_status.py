"""Validates the status of a ResourcePoolStatusRequest, which its controller writes once.

Some rules are only in Kubernetes' declarative validation, which does not validate an unchanged part again.

Source: Kubernetes `pkg/apis/resource/validation/validation_resourcepoolstatusrequest.go` and
`pkg/apis/resource/v1alpha3/zz_generated.validations.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, required, too_long, too_many
from ctrlmgr.api.unstructured import repeated
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.condition_validation import validate_conditions
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.resource.declared_formats import caseless_name, in_bounds, long_name, natural, needed, pool_path
from ctrlmgr.kinds.resource.shared_parts import Fields, validate_list

MOST_POOLS: Final = 1000
MOST_CONDITIONS: Final = 10
_LONGEST_ERROR: Final = 256
_STATUS: Final = Path("status")
_COUNT, _POOLS, _CONDITIONS = (_STATUS.child(each) for each in ("poolCount", "pools", "conditions"))
_COUNTS: Final = ("totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices")
_OPTIONAL: Final = ("resourceSliceCount", *_COUNTS, "nodeName", "validationError")


def validate_status(new: Fields | None, old: Fields | None) -> list[FieldError]:
    """Validate a status that replaces the status `old`; a status that was set is immutable."""
    if _content(new) == _content(old):
        return []
    if old is not None:
        errors = [invalid(_STATUS, _internal(new), IMMUTABLE)]
    else:
        errors = validate_conditions((new or {}).get("conditions") or (), _CONDITIONS)
    return errors if new is None else errors + _validate_changes(new, old)


def _content(status: Fields | None) -> Fields | None:
    """Return the fields that are set, because Kubernetes does not distinguish an empty list from an absent list."""
    return None if status is None else {name: value for name, value in status.items() if value not in (None, [])}


def _validate_changes(new: Fields, old: Fields | None) -> list[FieldError]:
    def changed(field: str) -> Any:
        value = new.get(field)
        return None if old is not None and value == old.get(field) else value

    lost = new.get("poolCount") is None and (old is None or old.get("poolCount") is not None)
    errors = [required(_COUNT)] if lost else natural(changed("poolCount"), _COUNT)
    errors += validate_list(changed("pools") or (), MOST_POOLS, _validate_pool, _POOLS)
    return errors + _validate_types(changed("conditions") or ())


def _validate_types(conditions: Sequence[Fields]) -> list[FieldError]:
    if len(conditions) > MOST_CONDITIONS:
        return [too_many(_CONDITIONS, len(conditions), MOST_CONDITIONS)]
    again = repeated(each.get("type") or "" for each in conditions)
    return [duplicate(_CONDITIONS.at(at), _condition(conditions[at])) for at in sorted(again)]


def _validate_pool(pool: Fields, path: Path) -> list[FieldError]:
    errors = needed(pool.get("driver"), path.child("driver"), caseless_name)
    errors += needed(pool.get("poolName"), path.child("poolName"), pool_path)
    errors += needed(pool.get("generation"), path.child("generation"), natural)
    errors += in_bounds(pool.get("resourceSliceCount"), path.child("resourceSliceCount"), 1)
    errors += [error for each in _COUNTS for error in natural(pool.get(each), path.child(each))]
    if (node := pool.get("nodeName")) is not None:
        errors += long_name(node, path.child("nodeName"))
    if name_formats.length(pool.get("validationError") or "") > _LONGEST_ERROR:
        errors.append(too_long(path.child("validationError"), _LONGEST_ERROR))
    return errors


def _internal(status: Fields | None) -> Any:
    """Return a status as Kubernetes' internal type, which errors about immutable fields show."""
    if status is None:
        return None
    pools, conditions = status.get("pools"), status.get("conditions")
    return {
        "PoolCount": status.get("poolCount"),
        "Pools": None if pools is None else [_internal_pool(each) for each in pools],
        "Conditions": None if conditions is None else [_condition(each) for each in conditions],
    }


def _internal_pool(pool: Fields) -> Fields:
    known = {"driver": "", "poolName": "", "generation": 0, **dict.fromkeys(_OPTIONAL)}
    return {f"{name[0].upper()}{name[1:]}": pool.get(name, nothing) for name, nothing in known.items()}


def _condition(condition: Fields) -> Fields:
    """Return a condition with the fields, and in the order, that Go encodes."""
    observed = {"observedGeneration": number} if (number := condition.get("observedGeneration")) else {}
    return {
        "type": condition.get("type") or "",
        "status": condition.get("status") or "",
        **observed,
        "lastTransitionTime": condition.get("lastTransitionTime"),
        "reason": condition.get("reason") or "",
        "message": condition.get("message") or "",
    }

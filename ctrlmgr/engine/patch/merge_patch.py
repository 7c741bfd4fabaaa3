"""Applies JSON merge patches (RFC 7386) as evanphx/json-patch v4 does.

Objects are merged, null deletes a field, and any other value replaces the field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctrlmgr.api.field import invalid, refuse
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.patch.go_value import json_type
from ctrlmgr.errors import BadRequest

_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def merge_patch(document: Unstructured, patch: Any, *, has_nulls: bool = True) -> Unstructured:
    """Return `document` changed by a decoded merge patch.

    Callers pass `has_nulls=False` if the patch is known to contain no null.

    Raises `BadRequest` if the merge patch is a scalar. Raises `Invalid` if the merge patch is a list, which would
    replace the object.
    """
    if isinstance(patch, dict):
        return _merged(document, patch, without_nulls if has_nulls else _as_it_is)
    if isinstance(patch, list):
        detail = f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_type(patch)} into Go value"
        raise refuse("", "", "", [invalid("patch", patch, f"{detail} of type {_TYPE_META}")])
    raise BadRequest("Invalid JSON Patch")


def _as_it_is(value: Any) -> Any:
    return value


def _merged(document: Unstructured, patch: Unstructured, cleaned: Callable[[Any], Any]) -> Unstructured:
    result = dict(document)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _replaced(result.get(name), value, cleaned)
    return result


def _replaced(current: Any, value: Any, cleaned: Callable[[Any], Any]) -> Any:
    if not isinstance(current, dict):
        return cleaned(value)
    # If a list replaces an object, nulls in the list are kept, because Go's library removes nulls only in the opposite
    # case.
    return _merged(current, value, cleaned) if isinstance(value, dict) else value


def without_nulls(value: Any) -> Any:
    """Return `value` without fields that are null, also within lists. The items of lists are kept, including nulls."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value

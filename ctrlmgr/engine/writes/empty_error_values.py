"""Formats values in error messages in the form that the request's body contains.

Go distinguishes an empty list or map (`[]`, `{}`) from an absent one (`null`). Decoded objects in ctrlmgr do not
distinguish them. Therefore the functions of this module read the value for an error message from the body.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ctrlmgr.api.field import FieldError
from ctrlmgr.engine.request_options import Body
from ctrlmgr.schema.codec import JSON

_NULL: Final = ("Invalid value: null", "Unsupported value: null")
_EMPTY: Final[tuple[Any, ...]] = ([], {})
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]|\[([^\]]+)\]")


def restore_empty_values(errors: list[FieldError], body: Body | None) -> list[FieldError]:
    """Replace `null` in errors, in place, by `[]` or `{}` if the body contains this value.

    Only bodies in JSON are read for this purpose.
    """
    if body is None or body.media_type != JSON or not any(each.body.startswith(_NULL) for each in errors):
        return errors
    try:
        sent = body.value()
    except ValueError:
        return errors
    errors[:] = [_shown(each, sent) for each in errors]
    return errors


def _shown(error: FieldError, sent: Any) -> FieldError:
    if not error.body.startswith(_NULL):
        return error
    found = _at(sent, error.field)
    if found not in _EMPTY:
        return error
    return error._replace(body=error.body.replace("null", "[]" if found == [] else "{}", 1))


def _at(value: Any, path: str) -> Any:
    """Return the value at a path of fields; None if the value is missing."""
    for field, index, key in _STEP.findall(path):
        if isinstance(value, dict):
            value = value.get(field or index or key)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
    return value

"""Values in errors as the body of a request has them.

Go tells an empty list or map from one that is absent, and shows `[]` or `{}` for the one and `null` for the other.
Objects here do not, since nothing that is stored does. So what the body has is looked up when it is shown.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from ctrlmgr.api.field import FieldError
from ctrlmgr.engine.options import Body
from ctrlmgr.schema.codec import JSON

_NULL: Final = ("Invalid value: null", "Unsupported value: null")
_EMPTY: Final[tuple[Any, ...]] = ([], {})
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]|\[([^\]]+)\]")


def as_sent(errors: list[FieldError], body: Body | None) -> list[FieldError]:
    """Have errors show `[]` and `{}` in place of `null`, in place, where the body, if it is JSON, says so."""
    if body is None or body.media_type != JSON or not any(each.body.startswith(_NULL) for each in errors):
        return errors
    try:
        sent = msgspec.json.decode(body.data)
    except (msgspec.DecodeError, RecursionError):
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
    """Return what is at a path of fields, None if nothing is."""
    for field, index, key in _STEP.findall(path):
        if isinstance(value, dict):
            value = value.get(field or index or key)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
    return value

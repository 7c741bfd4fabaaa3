"""Validates formatted strings: UUIDs, base64, dates.

Each function returns a list of errors, which is empty if the string is valid.

Source: kube-openapi `pkg/validation/strfmt`, as apiserver `pkg/cel/library/format.go` uses it.
"""

from __future__ import annotations

import re
from datetime import date

from ctrlmgr.expressions.time_values import parse_timestamp
from ctrlmgr.expressions.values import EvalError

_uuid = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII
).fullmatch
_CHARACTER = "[A-Za-z0-9+/]"
_base64 = re.compile(
    f"({_CHARACTER}{{4}})*({_CHARACTER}{{2}}==|{_CHARACTER}{{3}}=|{_CHARACTER}{{4}})", re.ASCII
).fullmatch


def uuid_problems(text: str) -> list[str]:
    """Return the errors of a string that must be a UUID."""
    return [] if _uuid(text) else ["does not match the UUID format"]


def base64_problems(text: str) -> list[str]:
    """Return the errors of a string that must be base64."""
    return [] if _base64(text) else ["invalid base64"]


def date_problems(text: str) -> list[str]:
    """Return the errors of a string that must be a date."""
    try:
        if len(text) != len("2006-01-02"):
            raise ValueError
        date.fromisoformat(text)
    except ValueError:
        return ["invalid date"]
    return []


def datetime_problems(text: str) -> list[str]:
    """Return the errors of a string that must be a date with a time."""
    try:
        parse_timestamp(text)
    except EvalError:
        return ["invalid datetime"]
    return []

"""Validates names and numbers as Kubernetes' declarative validation does, whose words differ from those of older code.

Source: Kubernetes `staging/src/k8s.io/apimachinery/pkg/api/validate/{strfmt,limits}.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ctrlmgr.api.field import FieldError, Path, invalid, required, too_long
from ctrlmgr.engine.validation import name_formats

T = TypeVar("T")

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_CASELESS: Final = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character"
)
_BYTES: Final = name_formats.too_long(name_formats.SUBDOMAIN_LENGTH, "bytes")
_CHARACTERS: Final = name_formats.too_long(name_formats.SUBDOMAIN_LENGTH)


def long_name(name: str, path: Path) -> list[FieldError]:
    """Validate a domain name in lower case (`k8s-long-name`)."""
    return [invalid(path, name, each) for each in _problems(name)]


def caseless_name(name: str, path: Path) -> list[FieldError]:
    """Validate a domain name in any case (`k8s-long-name-caseless`)."""
    mismatch = name_formats.mismatch(_CASELESS, _SUBDOMAIN, "Example.com")
    return [invalid(path, name, each if each == _BYTES else mismatch) for each in _problems(name.lower())]


def pool_path(name: str, path: Path) -> list[FieldError]:
    """Validate a name of the form `part/part`, in which each part is a domain name (`k8s-resource-pool-name`)."""
    longest = name_formats.SUBDOMAIN_LENGTH
    errors = [too_long(path, longest)] if name_formats.length(name) > longest else []
    for at, part in enumerate(name.split("/")):
        prefix = f"segment {at}: "
        if part:
            errors += [invalid(path, part, prefix + each) for each in _problems(part)]
        else:
            errors.append(invalid(path, name, f"{prefix}must not be empty"))
    return errors


def in_bounds(number: int | None, path: Path, least: int, most: int | None = None) -> list[FieldError]:
    """Validate an optional number; if `most` is None, it has no upper bound."""
    if number is None:
        return []
    if most is not None and number > most:
        return [invalid(path, number, f"must be less than or equal to {most}")]
    return [invalid(path, number, f"must be greater than or equal to {least}")] if number < least else []


def natural(number: int | None, path: Path) -> list[FieldError]:
    """Validate an optional number that is not negative."""
    return in_bounds(number, path, 0)


def needed(value: T | None, path: Path, check: Callable[[T, Path], list[FieldError]]) -> list[FieldError]:
    """Validate a value that is required; zero and "" are missing values."""
    return check(value, path) if value else [required(path)]


def _problems(name: str) -> list[str]:
    return [_BYTES if each == _CHARACTERS else each for each in name_formats.dns1123_subdomain(name)]

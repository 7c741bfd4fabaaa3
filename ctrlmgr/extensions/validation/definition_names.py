"""Validates the names of a CustomResourceDefinition: plural, singular, kind, list kind, short names, categories.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`
(`ValidateCustomResourceDefinitionNames`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.extensions.structural import Raw


def name_errors(raw: Raw, path: Path) -> Iterator[FieldError]:
    """Yield the validation errors of a CustomResourceDefinition's names; names that are not set are not validated."""
    for field in ("plural", "singular"):
        yield from _label(raw.get(field) or "", path.child(field))
    for field in ("kind", "listKind"):
        name = raw.get(field) or ""
        if name and (problems := name_formats.dns1035_label(name.lower())):
            words = "may have mixed case, but should otherwise match: " + ",".join(problems)
            yield invalid(path.child(field), name, words)
    yield from _labels(raw.get("shortNames") or (), path.child("shortNames"))
    kind = raw.get("kind") or ""
    if kind and kind == raw.get("listKind"):
        yield invalid(path.child("listKind"), kind, "kind and listKind may not be the same")
    yield from _labels(raw.get("categories") or (), path.child("categories"))


def _labels(found: Sequence[str], path: Path) -> Iterator[FieldError]:
    for at, name in enumerate(found):
        if problems := name_formats.dns1035_label(name):
            yield invalid(path.at(at), name, ",".join(problems))


def _label(name: str, path: Path) -> Iterator[FieldError]:
    if name and (problems := name_formats.dns1035_label(name)):
        yield invalid(path, name, ",".join(problems))

"""Returns warnings about parts of valid CustomResourceDefinitions that have no effect.

Source: apiextensions-apiserver `pkg/registry/customresourcedefinition/strategy.go`.
"""

from __future__ import annotations

from ctrlmgr.extensions.formats import is_recognized
from ctrlmgr.extensions.structural import Raw
from ctrlmgr.extensions.validation.internal_form import internal_spec
from ctrlmgr.extensions.validation.ratcheting import schemas_within
from ctrlmgr.golang.go_text import quote


def warnings(new: Raw, old: Raw | None = None) -> list[str]:
    """Return the warnings about a CustomResourceDefinition.

    For an update, return only the warnings that the old CustomResourceDefinition did not cause.
    """
    known = set(_formats(old)) if old is not None else set()
    return [f"unrecognized format {quote(each)}" for each in _formats(new) if each not in known]


def _schemas(definition: Raw) -> list[Raw]:
    schemas = internal_spec(definition.get("spec") or {}).schemas()
    return [within for schema in schemas for within in schemas_within(schema)]


def _formats(definition: Raw) -> list[str]:
    """Return the `format` values in a schema that validation ignores; a value may occur several times."""
    return [
        each["format"]
        for each in _schemas(definition)
        if each.get("format") and not is_recognized(each["format"], each.get("type") or "")
    ]

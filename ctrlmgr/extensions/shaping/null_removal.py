"""Removes forbidden nulls for which a schema has no default.

Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/prunenulls.go`.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.extensions.structural import MISSING, Structural


def drop_nulls(value: Any, schema: Structural) -> None:
    """Remove nulls, at any depth, from fields that are not nullable and have no default."""
    if type(value) is dict:
        for key, each in list(value.items()):
            below = schema.field(key)
            if below is None:
                continue
            if each is None and not below.nullable and below.default is MISSING:
                del value[key]
            else:
                drop_nulls(each, below)
    elif type(value) is list and schema.items is not None:
        for each in value:
            drop_nulls(each, schema.items)

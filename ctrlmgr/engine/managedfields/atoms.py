"""Finds the atomic parts of a value, which a merge replaces as a whole: atomic lists, maps and structs.

Source: apiserver `pkg/admission/plugin/policy/mutating/patch/smd.go` (`validatePatch`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctrlmgr.engine.managedfields.list_merge_types import ItemList
from ctrlmgr.engine.managedfields.map_merge_types import Map, Struct
from ctrlmgr.engine.managedfields.merge_type import Atomic, AtomicList, MergeType


def atoms(merge_type: MergeType, value: Any, path: str) -> Iterator[str]:
    """Yield the paths of atomic parts, such as `.spec.tolerations`."""
    if isinstance(merge_type, Atomic | AtomicList):
        if isinstance(value, dict | list):
            yield path
    elif isinstance(merge_type, Struct | Map) and isinstance(value, dict):
        for name, each in value.items():
            inner = merge_type.of(name)
            if inner is not None:
                yield from atoms(inner, each, f"{path}.{name}")
    elif isinstance(merge_type, ItemList) and isinstance(value, list):
        for index, each in enumerate(value):
            yield from atoms(merge_type.items, each, f"{path}[{index}]")

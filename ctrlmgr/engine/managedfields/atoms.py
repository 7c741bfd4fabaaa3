"""Finds the atomic parts of a value, which a merge replaces as a whole: atomic lists, maps and structs.

Source: apiserver `pkg/admission/plugin/policy/mutating/patch/smd.go` (`validatePatch`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctrlmgr.engine.managedfields.shape import Atomic, AtomicList, Shape
from ctrlmgr.engine.managedfields.shape_list import ItemList
from ctrlmgr.engine.managedfields.shape_map import Map, Struct


def atoms(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """Yield the paths of atomic parts, such as `.spec.tolerations`."""
    if isinstance(shape, Atomic | AtomicList):
        if isinstance(value, dict | list):
            yield path
    elif isinstance(shape, Struct | Map) and isinstance(value, dict):
        for name, each in value.items():
            inner = shape.of(name)
            if inner is not None:
                yield from atoms(inner, each, f"{path}.{name}")
    elif isinstance(shape, ItemList) and isinstance(value, list):
        for index, each in enumerate(value):
            yield from atoms(shape.items, each, f"{path}[{index}]")

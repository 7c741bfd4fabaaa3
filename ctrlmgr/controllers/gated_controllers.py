"""Selects the controllers that run with the feature gates of this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.engine.features.gates import is_on


def with_gates_on(descriptors: Iterable[ControllerDescriptor[Any]]) -> Iterator[ControllerDescriptor[Any]]:
    """Yield the controllers all of whose feature gates are on."""
    return (each for each in descriptors if all(map(is_on, each.feature_gates)))

"""Selects the controllers that run with the feature gates and the served APIs of this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import structlog

from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.kind_registry import Kinds

log = structlog.get_logger(__name__)


def with_served_kinds(
    descriptors: Iterable[ControllerDescriptor[Any]], kinds: Kinds
) -> Iterator[ControllerDescriptor[Any]]:
    """Yield the controllers for whose resources the server serves a version; log a warning about the others."""
    served = {kind.storage for kind in kinds} | {kind.resource for kind in kinds}
    for each in descriptors:
        builtin = (one for one in (*each.watches, *each.owns) if kinds.stored(one) is not None)
        if missing := sorted({str(one) for one in builtin if one not in served}):
            log.warning("skipping controller, see --runtime-config", controller=each.name, missing_apis=missing)
        else:
            yield each


def with_gates_on(descriptors: Iterable[ControllerDescriptor[Any]]) -> Iterator[ControllerDescriptor[Any]]:
    """Yield the controllers all of whose feature gates are on."""
    return (each for each in descriptors if all(map(is_on, each.feature_gates)))

"""Selects the controllers that run with the feature gates and the served APIs of this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import structlog

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.schema import published_schema

log = structlog.get_logger(__name__)


def with_served_kinds(
    descriptors: Iterable[ControllerDescriptor[Any]], kinds: Kinds
) -> Iterator[ControllerDescriptor[Any]]:
    """Yield the controllers without the controllers of disabled resources, about which a warning is logged.

    A controller of a resource that is not served by default decides itself what to do without it.
    """
    served = {kind.storage for kind in kinds} | {kind.resource for kind in kinds}
    for each in descriptors:
        needed = _served_by_default().intersection((*each.watches, *each.owns))
        if missing := sorted(str(one) for one in needed - served):
            log.warning("skipping controller, see --runtime-config", controller=each.name, missing_apis=missing)
        else:
            yield each


@cache
def _served_by_default() -> frozenset[Resource]:
    """Return the resources of which a version is served by default."""
    versions = [each for each in published_schema.discovery().values() if "resources" in each]
    return frozenset(
        Resource(version["groupVersion"].rpartition("/")[0], entry["name"])
        for version in versions
        for entry in version["resources"]
    )


def with_gates_on(descriptors: Iterable[ControllerDescriptor[Any]]) -> Iterator[ControllerDescriptor[Any]]:
    """Yield the controllers whose feature gates are all on."""
    return (each for each in descriptors if all(map(is_on, each.feature_gates)))

"""Decides whether to create, update or delete one APIService.

Source: kube-aggregator `pkg/controllers/autoregister/autoregister_controller.go` (`checkAPIService`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from ctrlmgr.controllers.apiservices.desired_api_services import DesiredAPIService, Mode
from ctrlmgr.engine.aggregated_groups import AUTOMANAGED

_MANAGED = frozenset(mode.value for mode in Mode)


class Step(Enum):
    """The next step for an APIService."""

    NOTHING = auto()
    CREATE = auto()
    UPDATE = auto()
    DELETE = auto()


def next_step(
    current: Mapping[str, Any] | None, desired: DesiredAPIService | None, *, done: bool, at_start: bool
) -> Step:
    """Return the next step for an APIService.

    `done` is True if this process has corrected the APIService before, and `at_start` is True if the APIService existed
    when the process started.
    """
    if desired is not None and desired.mode is Mode.ON_START and done:
        return Step.NOTHING
    if current is None:
        return Step.NOTHING if desired is None else Step.CREATE
    label = (current["metadata"].get("labels") or {}).get(AUTOMANAGED)
    if label not in _MANAGED or (label == Mode.ON_START.value and (done or not at_start)):
        return Step.NOTHING
    if desired is None:
        return Step.DELETE
    return Step.NOTHING if current.get("spec") == desired.spec else Step.UPDATE

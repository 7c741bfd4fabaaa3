"""The update strategy of Deployments and DaemonSets: its defaults, its limits, and its form in error messages.

Source: Kubernetes' `pkg/apis/apps/v1/defaults.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.kinds.apps.templates import (
    fill_nil,
)

ROLLING = "RollingUpdate"


def default_rolling_update(strategy: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Set the defaults of an update strategy: a rolling update with these `values`."""
    if not strategy.get("type"):
        strategy["type"] = ROLLING
    if strategy["type"] == ROLLING:
        if strategy.get("rollingUpdate") is None:
            strategy["rollingUpdate"] = {}
        fill_nil(strategy["rollingUpdate"], values)


def shown_strategy(strategy: Mapping[str, Any]) -> dict[str, Any]:
    """Return an update strategy for error messages, in the format in which Go prints its struct."""
    rolling = strategy.get("rollingUpdate")
    shown = rolling and {"MaxUnavailable": rolling.get("maxUnavailable"), "MaxSurge": rolling.get("maxSurge")}
    return {"Type": strategy.get("type") or "", "RollingUpdate": shown}


def bounds(rolling: Mapping[str, Any]) -> tuple[int | str, int | str]:
    """Return maxUnavailable and maxSurge; an empty string does not count as an absent value."""
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    return 0 if unavailable is None else unavailable, 0 if surge is None else surge

"""The strategies of the kinds that need one, by what they serve."""

from __future__ import annotations

from ctrlmgr.resources.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {}
"""Strategies by `apiVersion/Kind`; every other kind has the base class's."""

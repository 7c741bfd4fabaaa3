"""Strategies of kinds in several API groups; these strategies differ from the common strategy only in flags."""

from __future__ import annotations

from ctrlmgr.engine.strategy import Strategy


class GuardedStrategy(Strategy):
    """The strategy of kinds for which an update must contain the resourceVersion."""

    allow_unconditional_update = False

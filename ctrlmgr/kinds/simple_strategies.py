"""Strategies for kinds of several groups, which differ from the common strategy only in flags."""

from __future__ import annotations

from ctrlmgr.engine.strategy import Strategy


class GuardedStrategy(Strategy):
    """The strategy of kinds whose updates must contain the resourceVersion."""

    allow_unconditional_update = False

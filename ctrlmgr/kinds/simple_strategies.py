"""Strategies for kinds of several groups that differ from the common strategy only in flags."""

from __future__ import annotations

from ctrlmgr.engine.strategy import Strategy


class GuardedStrategy(Strategy):
    """Kinds whose updates require the resourceVersion."""

    allow_unconditional_update = False

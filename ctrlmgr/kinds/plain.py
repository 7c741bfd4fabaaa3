"""Strategies that differ from the rest in a flag or two only, and that kinds of several groups have."""

from __future__ import annotations

from ctrlmgr.engine.strategy import Strategy


class GuardedStrategy(Strategy):
    """Kinds that only a caller who has read them may replace."""

    allow_unconditional_update = False

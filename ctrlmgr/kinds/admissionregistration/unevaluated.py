"""What is kept and shown but not obeyed: policies that change what is written."""

from __future__ import annotations

from typing import Final

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy

UNEVALUATED: Final = "this server stores mutating admission policies and their bindings, but does not evaluate them"


class UnevaluatedStrategy(Strategy):
    """The base of kinds that a caller might take for obeyed."""

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn that nothing obeys the object."""
        return [UNEVALUATED]

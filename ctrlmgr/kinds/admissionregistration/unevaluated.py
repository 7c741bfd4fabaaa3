"""What is kept and shown but not obeyed: admission policies, whose expressions nothing evaluates here."""

from __future__ import annotations

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy


class UnevaluatedStrategy(Strategy):
    """The base of kinds that a caller might take for obeyed."""

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn that nothing obeys the object."""
        return ["this server stores admission policies and their bindings, but does not evaluate them"]

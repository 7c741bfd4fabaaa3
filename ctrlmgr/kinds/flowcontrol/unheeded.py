"""What is kept and shown but not gone by: flow control. Requests are let in by shares of the server's own limits."""

from __future__ import annotations

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy


class UnheededStrategy(Strategy):
    """The base of kinds that a caller might take for obeyed."""

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn that no request is treated by the object."""
        if ctx.subresource:
            return []
        return ["this server stores flow schemas and priority levels, but does not go by them"]

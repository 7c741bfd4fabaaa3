"""The state of a plugin's policies or webhooks between the two rounds of mutating admission.

Source: apiserver `pkg/admission/plugin/webhook/mutating/reinvocationcontext.go`.
"""

from __future__ import annotations

from ctrlmgr.api.unstructured import Unstructured


class Rounds:
    """The state of one plugin during the two mutating rounds of one write."""

    def __init__(self) -> None:
        """Create the state for the first round."""
        self.output: Unstructured | None = None
        """The object as it was after the first round."""
        self.asked: set[str] = set()
        """The policies or webhooks that were called and have the reinvocation policy IfNeeded."""
        self.again: set[str] = set()
        """The policies or webhooks that are called again in the second round."""

    def require(self) -> None:
        """Mark all policies or webhooks that were called, so that they are called again.

        Another call is needed after the object has changed.
        """
        self.again |= self.asked
        self.asked = set()

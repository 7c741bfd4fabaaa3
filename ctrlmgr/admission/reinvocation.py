"""The state of a plugin's policies or webhooks between the two rounds of mutating admission.

Source: apiserver `pkg/admission/plugin/webhook/mutating/reinvocationcontext.go`.
"""

from __future__ import annotations

from ctrlmgr.api.unstructured import Unstructured


class Rounds:
    """The rounds of one plugin in one write."""

    def __init__(self) -> None:
        """Start the first round."""
        self.output: Unstructured | None = None
        """The object after the first round."""
        self.asked: set[str] = set()
        """The policies or webhooks that ask for reinvocation and have been called."""
        self.again: set[str] = set()
        """The policies or webhooks to call again."""

    def require(self) -> None:
        """Mark all called ones for another call, because the object has changed since."""
        self.again |= self.asked
        self.asked = set()

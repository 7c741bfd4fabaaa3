"""Remembers, between the two rounds of mutating admission, which policies or webhooks of a plugin were called.

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
        """Mark all policies or webhooks that were called, so that the second round calls them again.

        The second call is needed because the object has changed since the first call.
        """
        self.again |= self.asked
        self.asked = set()

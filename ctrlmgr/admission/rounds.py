"""What is remembered from the first round of admission to the second, where each is asked again if it wants that.

Source: apiserver `pkg/admission/plugin/webhook/mutating/reinvocationcontext.go`.
"""

from __future__ import annotations

from ctrlmgr.api.unstructured import Unstructured


class Rounds:
    """The rounds of one plugin in one write."""

    def __init__(self) -> None:
        """Begin the first."""
        self.output: Unstructured | None = None
        """The object as the first round left it."""
        self.asked: set[str] = set()
        """What wants to be asked again, and has been asked."""
        self.again: set[str] = set()
        """What to ask again."""

    def require(self) -> None:
        """Have what was asked so far asked again: the object has changed since."""
        self.again |= self.asked
        self.asked = set()

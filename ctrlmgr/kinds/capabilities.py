"""The capabilities that containers may have on the nodes of this process' cluster.

As in Kubernetes (`pkg/capabilities`) there is one value for a process, set at its start: many kinds validate pod
templates, and none of them has settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class Capabilities:
    """The allowed capabilities."""

    allow_privileged: bool = True
    """Whether containers may be privileged."""


CAPABILITIES: Final = Capabilities()
"""The capabilities of this process."""

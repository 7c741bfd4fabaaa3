"""What containers may be that run on the nodes of this process' cluster.

As in Kubernetes (`pkg/capabilities`) it is one answer for a whole process, given once when that starts: templates of
pods are validated in many kinds, none of which has settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class Capabilities:
    """What is allowed."""

    allow_privileged: bool = True
    """Whether containers may be privileged."""


CAPABILITIES: Final = Capabilities()
"""Those of this process."""

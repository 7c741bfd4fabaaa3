"""The capabilities that containers may have on the nodes of this process' cluster.

As in Kubernetes (`pkg/capabilities`), the value is global in a process and set when the process starts. The reason is
that many kinds validate pod templates, and these kinds have no access to the settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class Capabilities:
    """The capabilities that containers may have."""

    allow_privileged: bool = True
    """Whether containers may be privileged."""


CAPABILITIES: Final = Capabilities()
"""The capabilities that apply in this process."""

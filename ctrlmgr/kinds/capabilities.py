"""The capabilities that containers may have on the nodes of this cluster, such as being privileged.

As in Kubernetes (`pkg/capabilities`), these capabilities are global in the process, and are set when the process
starts. The capabilities are global because many kinds validate pod templates, and these kinds have no access to the
settings.
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
"""Return the capabilities that apply in this process."""

"""The priorities of items: the higher number is handed out first (controller-runtime's `priorityqueue`).

Any number is a priority. Each number in use has a queue of its own, so a controller should use few.
"""

from __future__ import annotations

from typing import Final

URGENT: Final = 100
"""Priority of deletions, a pod that stops being ready, or an edit by a user."""
CHANGE: Final = 0
"""Priority of other changes, and the default."""
LOW: Final = -100
"""Priority of objects of an initial list or resync, and of periodic work: controller-runtime's `LowPriority`."""

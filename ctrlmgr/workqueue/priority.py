"""The priorities of items: items with a higher number are handed out first (controller-runtime's `priorityqueue`).

Any number is a valid priority. There is a separate queue for each number in use, so a controller should use few
different numbers.
"""

from __future__ import annotations

from typing import Final

URGENT: Final = 100
"""The priority of deletions, of a pod that stops being ready, and of edits by users."""
CHANGE: Final = 0
"""The priority of other changes; this is the default."""
LOW: Final = -100
"""The priority of objects of an initial list or resync, and of periodic work: controller-runtime's `LowPriority`."""

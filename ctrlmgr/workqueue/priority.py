"""The priorities of items: items with a higher number are handed out first (controller-runtime's `priorityqueue`).

Any number is a valid priority. The workqueue keeps a separate queue for each priority in use, so a controller should
use few different priorities.
"""

from __future__ import annotations

from typing import Final

URGENT: Final = 100
"""The priority of deletions, of a pod that stops being ready, and of edits by users."""
CHANGE: Final = 0
"""The default priority: the priority of all changes that are neither urgent nor low."""
LOW: Final = -100
"""The priority of objects of an initial list or resync, and of periodic work: controller-runtime's `LowPriority`."""

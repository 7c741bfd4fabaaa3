"""The priorities of items: the higher number is handed out first (controller-runtime's `priorityqueue`).

Any number is a priority. Each number in use has a queue of its own, so a controller should use few.
"""

from __future__ import annotations

from typing import Final

URGENT: Final = 100
"""Deletions, a pod that stops being ready, an edit by a user."""
CHANGE: Final = 0
"""Other changes. This is the priority of an item that is added without one."""
LOW: Final = -100
"""Objects of an initial list or of a resync, and periodic work: `LowPriority` of controller-runtime's `handler`."""

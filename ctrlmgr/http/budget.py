"""A budget that limits the number of bytes which are in memory at the same time."""

from __future__ import annotations


class Budget:
    """Counts the bytes that are held in memory. Used on the event loop's thread only."""

    __slots__ = ("_most", "held")

    def __init__(self, most: int) -> None:
        """Create a budget of `most` bytes."""
        self._most = most
        self.held = 0
        """The number of bytes that are held now."""

    def reserve(self, count: int) -> bool:
        """Reserve `count` bytes; return False if the bytes exceed the budget."""
        if self.held + count > self._most:
            return False
        self.held += count
        return True

    def release(self, count: int) -> None:
        """Release `count` bytes."""
        self.held -= count

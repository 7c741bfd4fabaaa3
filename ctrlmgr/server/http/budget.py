"""A budget of bytes: how much may be held at a time."""

from __future__ import annotations


class Budget:
    """Counts bytes that are held; used on the event loop only."""

    __slots__ = ("_most", "held")

    def __init__(self, most: int) -> None:
        """Allow `most` bytes."""
        self._most = most
        self.held = 0
        """Bytes that are held now."""

    def reserve(self, count: int) -> bool:
        """Return whether `count` more bytes may be held, and count them if so."""
        if self.held + count > self._most:
            return False
        self.held += count
        return True

    def release(self, count: int) -> None:
        """Stop counting `count` bytes."""
        self.held -= count

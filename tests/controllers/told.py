"""A recorder of Events that a test can read."""

from __future__ import annotations

from typing import Any


class Told:
    """Keeps what is told, as (type, reason, message)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def event(self, subject: Any, type: str, reason: str, message: str) -> None:
        self.events.append((type, reason, message))

    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.events]

"""A recorder of Events whose Events a test can read."""

from __future__ import annotations

from typing import Any


class RecordedEvents:
    """A recorder that stores Events as (type, reason, message), and their actions by reason."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.actions: dict[str, str] = {}

    def event(
        self, subject: Any, type: str, reason: str, message: str, *, action: str = "", related: Any = None
    ) -> None:
        self.events.append((type, reason, message))
        self.actions[reason] = action

    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.events]

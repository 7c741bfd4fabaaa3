"""Finds the conflicts of an apply, and creates the error for a refused apply.

Source: structured-merge-diff `merge/conflict.go`, apimachinery `managedfields/internal/conflict.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctrlmgr.engine.managedfields import field_set
from ctrlmgr.engine.managedfields.field_set import FieldSet, Path
from ctrlmgr.engine.managedfields.managers import Manager
from ctrlmgr.errors import ApplyConflict, StatusCause, StatusDetails


class Conflict(NamedTuple):
    """One conflict: a field that another manager owns."""

    manager: Manager
    path: Path


class Conflicts(Exception):
    """Raised if an apply without `force` would change fields of other managers; the error has at least one conflict."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        """Create the error with the given conflicts, in the order in which the message lists them."""
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts

    @classmethod
    def of(cls, sets: dict[Manager, FieldSet]) -> Conflicts:
        """Return the conflicts for the changed fields of each manager."""
        managers = sorted(sets, key=lambda manager: manager.identifier)
        return cls([Conflict(manager, path) for manager in managers for path in field_set.paths(sets[manager])])

    def refusal(self) -> ApplyConflict:
        """Return the 409 error that lists the conflicts."""
        causes = tuple(
            StatusCause("FieldManagerConflict", f"conflict with {manager}", field_set.text(path))
            for manager, path in self.conflicts
        )
        return ApplyConflict(self._message(), details=StatusDetails(causes=causes))

    def _message(self) -> str:
        if len(self.conflicts) == 1:
            manager, path = self.conflicts[0]
            return f"Apply failed with 1 conflict: conflict with {manager}: {field_set.text(path)}"
        lines: list[str] = []
        for manager in dict.fromkeys(conflict.manager for conflict in self.conflicts):
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {field_set.text(path)}" for other, path in self.conflicts if other == manager]
        return f"Apply failed with {len(self.conflicts)} conflicts: " + "\n".join(lines)

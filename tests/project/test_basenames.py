"""Tests that no two modules of `ctrlmgr` share a basename, except those with the same role (`ROLES`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "ctrlmgr"

ROLES = {
    "__init__": "Python requires the name.",
    "controller": "The reconciler of each controller, its watches and its build function.",
    "decide": "The pure decisions of a controller or a plugin, without I/O.",
    "declared": "The declarations of the kinds of an API group.",
    "defaults": "The functions that set the defaults of a kind, as `defaults.go` in Kubernetes' API groups.",
    "printers": "The table columns of the kinds of an API group.",
    "status": "The status of a kind: how its controller computes it, and how the API validates it.",
    "strategy": "The hooks of a kind's writes, as in Kubernetes' `strategy.go`, and their interface in the engine.",
    "validation": "The validation of a kind, as `validation.go` in Kubernetes' API groups.",
    "view": "The typed view of the fields that one controller reads.",
    "warnings": "The warnings about allowed objects of a kind, as `warnings.go` in Kubernetes' API groups.",
}
"""Basenames that several modules may have, because they mean the same in each folder; each has its meaning as the
value.
"""


def basenames() -> list[str]:
    return [path.stem for path in PACKAGE.rglob("*.py")]


def duplicates(names: Iterable[str]) -> set[str]:
    """Return the basenames that occur more than once and are not in `ROLES`."""
    return {name for name, count in Counter(names).items() if count > 1} - ROLES.keys()


def test_modules_have_unique_basenames() -> None:
    found = duplicates(basenames())
    assert sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.stem in found) == []


@pytest.mark.parametrize("role", ROLES)
def test_a_role_name_is_used_by_several_modules(role: str) -> None:
    assert basenames().count(role) > 1


def test_a_duplicate_is_found() -> None:
    assert duplicates(["past", "log", "past", "strategy", "strategy"]) == {"past"}

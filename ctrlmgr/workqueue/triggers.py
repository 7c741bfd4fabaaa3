"""The revisions for which an item was added, which can be merged at low cost."""

from __future__ import annotations

from typing import TypeAlias

from ctrlmgr.api.resource import Revision

Triggers: TypeAlias = tuple[Revision, ...] | set[Revision]
"""The revisions of one addition (a tuple), or the merged revisions of several additions (a set)."""


def merged(earlier: Triggers, more: Triggers) -> Triggers:
    """Return the union of two sets of revisions.

    If one of them is a set, it is changed in place, so that only the new revisions cost time.
    """
    if isinstance(earlier, set):
        earlier.update(more)
        return earlier
    return {*earlier, *more} if more else earlier


def ascending(triggers: Triggers) -> tuple[Revision, ...]:
    """Return the revisions in ascending order, without duplicates."""
    if isinstance(triggers, tuple) and len(triggers) < 2:
        return triggers
    return tuple(sorted(set(triggers)))

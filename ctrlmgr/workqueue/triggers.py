"""The revisions that an item was added for, kept cheaply while more are added."""

from __future__ import annotations

from typing import TypeAlias

from ctrlmgr.api.resource import Revision

Triggers: TypeAlias = tuple[Revision, ...] | set[Revision]
"""Revisions as they came (a tuple: one add) or merged (a set: several)."""


def merged(earlier: Triggers, more: Triggers) -> Triggers:
    """Return the union; a set is the queue's own and grows in place, so that merging costs what is new."""
    if isinstance(earlier, set):
        earlier.update(more)
        return earlier
    return {*earlier, *more} if more else earlier


def ascending(triggers: Triggers) -> tuple[Revision, ...]:
    """Return the revisions in order, each once."""
    if isinstance(triggers, tuple) and len(triggers) < 2:
        return triggers
    return tuple(sorted(set(triggers)))

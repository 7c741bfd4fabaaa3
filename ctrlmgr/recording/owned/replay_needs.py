"""Determines which controllers a replay can run, from the kinds that the recording contains.

A controller decides wrongly if the recording lacks a kind that the controller reads. For example, the volume binder
would mark claims as lost if the recording contained claims and no volumes. Guarantee: a controller runs only after the
recording has shown an object of each kind that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers import registry


class ReplayNeeds:
    """The controllers that wait for kinds that they need."""

    def __init__(self, names: Iterable[str]) -> None:
        """Start with the controllers that have these names; other controllers need no kinds."""
        known = registry.by_name()
        needs = {name: known[name].replay_needs for name in names if name in known}
        self._missing = {name: {*kinds} for name, kinds in needs.items() if kinds}

    @property
    def waiting(self) -> Sequence[str]:
        """The names of the controllers that cannot run yet."""
        return [*self._missing]

    def see(self, resource: Resource) -> Sequence[str]:
        """Record that the recording contains a kind; return the names of the controllers that can run from now on."""
        for kinds in self._missing.values():
            kinds.discard(resource)
        ready = [name for name, kinds in self._missing.items() if not kinds]
        for name in ready:
            del self._missing[name]
        return ready

"""Carrying out what becomes of slices: names for the new ones, and one write for each.

Guarantees: creations come first, deletions last, so that no endpoint is missing in between; where nothing may be
created the rest is done all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.controllers.endpointslice.objects import Appearance, changed_slice, new_slice
from ctrlmgr.controllers.endpointslice.own import OwnSlices
from ctrlmgr.controllers.endpointslice.packing import Changes
from ctrlmgr.engine.names import generate_name
from ctrlmgr.errors import NamespaceTerminating

log = structlog.get_logger(__name__)

_NAME_ATTEMPTS = 8


class SliceWriter:
    """Writes the slices of one manager; threads may share it as they may `OwnSlices`."""

    def __init__(self, slices: OwnSlices, random: Random) -> None:
        """Write `slices`, with names drawn from `random`."""
        self._slices = slices
        self._random = random

    def write(self, owner: Key, changes: Changes, appearance: Appearance, client: Client, *, may_create: bool) -> None:
        """Carry out `changes` to the slices kept for `owner`; raises what `client` raises.

        In a namespace that is terminating nothing is created, which is no error.
        """
        try:
            for draft in changes.create if may_create else ():
                self._slices.writes.create(owner, new_slice(draft, appearance, self._free_name(appearance)), client)
        except NamespaceTerminating:
            log.debug("slices not created, their namespace is terminating", key=str(owner))
        for draft in changes.update:
            self._slices.writes.update(owner, changed_slice(draft, appearance), client)
        self.delete(owner, (draft.current for draft in changes.delete if draft.current is not None), client)

    def delete(self, owner: Key, slices: Iterable[Object], client: Client) -> None:
        """Delete slices kept for `owner`; those that are gone already are no error."""
        for obj in slices:
            self._slices.writes.delete(owner, obj, client)

    def _free_name(self, appearance: Appearance) -> str:
        """Return a name that the cache does not have; if the log has it all the same, the creation is tried again."""
        name = generate_name(appearance.prefix, self._random)
        for _ in range(_NAME_ATTEMPTS):
            if self._slices.is_free(Key(appearance.namespace, name)):
                break
            name = generate_name(appearance.prefix, self._random)
        return name

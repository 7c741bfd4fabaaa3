"""Writes changes to slices: generates names, and makes one request for each slice.

Guarantees: slices are created first and deleted last, so that no endpoint is missing between two writes. If the API
forbids the creation of slices, the writer still updates and deletes slices.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.controllers.endpointslice.managed_slices import OwnSlices
from ctrlmgr.controllers.endpointslice.slice_objects import Appearance, changed_slice, new_slice
from ctrlmgr.controllers.endpointslice.slice_packing import Changes
from ctrlmgr.engine.generated_names import generate_name
from ctrlmgr.errors import NamespaceTerminating

log = structlog.get_logger(__name__)

_NAME_ATTEMPTS = 8


class SliceWriter:
    """Writes the slices of one manager; an instance is as thread-safe as `OwnSlices`."""

    def __init__(self, slices: OwnSlices, random: Random) -> None:
        """Create a writer for the slices in `slices`, which generates names with `random`."""
        self._slices = slices
        self._random = random

    def write(self, owner: Key, changes: Changes, appearance: Appearance, client: Client, *, may_create: bool) -> None:
        """Write `changes` to the slices of `owner`; raises the errors of `client` if a write fails.

        In a terminating namespace, no slices are created, and no error is raised.
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
        """Delete some slices of `owner`; a slice that was already deleted is not an error."""
        for obj in slices:
            self._slices.writes.delete(owner, obj, client)

    def _free_name(self, appearance: Appearance) -> str:
        """Return a name that no cached slice has.

        If the log contains a slice with the returned name, the creation fails and is retried.
        """
        name = generate_name(appearance.prefix, self._random)
        for _ in range(_NAME_ATTEMPTS):
            if self._slices.is_free(Key(appearance.namespace, name)):
                break
            name = generate_name(appearance.prefix, self._random)
        return name

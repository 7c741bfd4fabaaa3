"""Deletes old objects of one kind at a fixed interval.

Guarantees: the deletion of an object has its uid as a precondition. If a deletion fails, the other old objects are
deleted nevertheless, and the deletion is retried after the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock
from ctrlmgr.errors import ApiError, Conflict, NotFound
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Result

log = structlog.get_logger(__name__)

_ALL: Final = Key("", "all")


class PeriodicCleaner:
    """Checks all objects of a kind at an interval, and deletes old ones."""

    def __init__(self, objects: Lister, is_over: Callable[[Object, int], bool], *, every: float, clock: Clock) -> None:
        """Create a reconciler that checks the objects of a lister every `every` seconds.

        The function `is_over` returns whether an object is deleted at a time (microseconds since 1970).
        """
        self._objects = objects
        self._is_over = is_over
        self._every = every
        self._clock = clock

    def on_start(self) -> Iterable[Key]:
        """Return the only key of this controller, which stands for all objects."""
        return [_ALL]

    def reconcile(self, key: Key, client: Client) -> Result:
        """Delete old objects."""
        now = self._clock.now()
        for each in self._objects.list():
            if self._is_over(each, now):
                _delete(each, client)
        return Result(self._every)


def _delete(obj: Object, client: Client) -> None:
    try:
        client.delete(obj)
    except (Conflict, NotFound):
        log.debug("old object already deleted or replaced", resource=str(obj.resource), object=str(obj.key))
    except ApiError as error:
        log.warning("deleting old object failed", resource=str(obj.resource), object=str(obj.key), error=str(error))

"""Lists and watches one resource of a cluster, as client-go's `Reflector` does.

Guarantees:

- If a watch breaks, or a busy server refuses a watch, the reflector continues from the last revision that it received.
  After any other refusal of a watch, such as 410 or an unknown revision, the reflector lists all objects again.
- Lists are streamed (WatchList) if the server supports it. If the server refuses a streamed list, or ends the response
  before the list is complete, the reflector requests lists in pages from then on.
- Failed requests are retried after a delay, which doubles up to half a minute. If a kind is not defined yet, or no
  longer defined, requests for the kind count as failed, and the store contains no objects of the kind.
- The reflector puts its messages on one queue, in the server's order.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from random import Random
from typing import Final, NamedTuple, TypeAlias

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import (
    ApiError,
    BadRequest,
    CtrlmgrError,
    InternalError,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
)
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.framework.remote.remote_api import Api, error_of
from ctrlmgr.recording.capture.cluster_client import Served
from ctrlmgr.recording.watch_event import CHANGES, decode_line

log = structlog.get_logger(__name__)

FIRST_DELAY: Final = 0.8
LONGEST_DELAY: Final = 30.0
"""The minimum and maximum delay between retries in seconds; the delay doubles with each retry (as in client-go's
reflector).
"""
_SHORTEST_WATCH: Final = 300
"""The minimum duration of a watch in seconds.

The maximum duration of a watch is twice the minimum, so that watches do not all end at the same time.
"""
_LONGEST_LIST: Final = 60
"""The maximum duration of a streamed list in seconds, because some servers never send the bookmark that completes it.

When the maximum duration is over, the server ends the streamed list. If the list was complete, the reflector starts an
ordinary watch.
"""
_END_OF_LIST: Final = "k8s.io/initial-events-end"
_GOES_ON: Final = (ServiceUnavailable, TooManyRequests, InternalError)
"""Errors after which a watch continues from its last revision."""


class Listed(NamedTuple):
    """A message with all objects of a resource at a revision."""

    resource: Resource
    revision: Revision
    objects: list[Object]


class Changed(NamedTuple):
    """A message with a change of one object."""

    resource: Resource
    type: EventType
    object: Object


class Progress(NamedTuple):
    """A message that the resource has no further changes up to this revision."""

    resource: Resource
    revision: Revision


Message: TypeAlias = Listed | Changed | Progress


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _Metadata


_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode


class Stream:
    """Lists and watches one resource; one thread calls `run`."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        queue: SimpleQueue[Message],
        *,
        clock: Clock,
        random: Random,
        only: Key | None = None,
        namespace: str = "",
    ) -> None:
        """Follow `resource` in one namespace (all namespaces if it is empty), or follow only the object `only`.

        The reflector puts its messages on `queue`.
        """
        self._api = api
        self._resource = resource
        self._queue = queue
        self._clock = clock
        self._random = random
        self._namespace = only.namespace if only is not None else namespace
        self._selection = {"fieldSelector": f"metadata.name={only.name}"} if only is not None else {}
        self._served: Served | None = None
        self._streams_lists = True
        # All changes up to this revision were put on the queue; 0 means that a list is needed first.
        self._revision: Revision = 0
        self._empty = False  # Whether an empty list was put on the queue, because the kind is not served.

    def run(self, stop: threading.Event) -> None:
        """Follow the resource until `stop` is set."""
        delay = FIRST_DELAY
        while not stop.is_set():
            before = self._revision
            try:
                self._follow(stop)
                delay = FIRST_DELAY
                continue
            except NotFound as error:
                if not self._empty:  # The errors of later attempts contain nothing new.
                    log.warning("waiting for a definition", resource=str(self._resource), error=str(error))
                self._tell_of_nothing()
            except _GOES_ON as error:
                log.warning("retrying list and watch", resource=str(self._resource), error=str(error), delay=delay)
            except CtrlmgrError as error:
                log.info("listing again", resource=str(self._resource), error=str(error), delay=delay)
                self._revision = 0
            if self._revision > before:
                delay = FIRST_DELAY
            stop.wait(delay * (1 + self._random.random()))
            delay = min(2 * delay, LONGEST_DELAY)

    def _tell_of_nothing(self) -> None:
        self._served, self._revision = None, 0
        if not self._empty:
            self._empty = True
            self._queue.put(Listed(self._resource, 0, []))

    def _follow(self, stop: threading.Event) -> None:
        """Follow one watch until it ends; list the objects first if necessary."""
        if self._served is None:
            self._served = self._api.find(self._resource)
        if not self._revision and self._streams_lists:
            try:
                self._watch(stop, _LONGEST_LIST, starts=True)
                return
            except (TooManyRequests, NotFound):
                raise
            except CtrlmgrError as error:
                if self._revision:  # The list was complete, and the watch that followed has ended.
                    raise
                log.info("requesting pages instead of a streamed list", resource=str(self._resource), error=str(error))
                self._streams_lists = False
        if not self._revision:
            self._list()
        self._watch(stop, _SHORTEST_WATCH + self._random.randrange(_SHORTEST_WATCH), starts=False)

    def _list(self) -> None:
        assert self._served is not None, "it was looked up"
        revision, objects = self._api.list(self._served, self._namespace)
        name = self._selection.get("fieldSelector", "").removeprefix("metadata.name=")
        self._listed(revision, [each for each in objects if not name or each.name == name])

    def _listed(self, revision: Revision, objects: list[Object]) -> None:
        self._empty = False
        self._revision = revision
        self._queue.put(Listed(self._resource, revision, [self._ours(each) for each in objects]))

    def _watch(self, stop: threading.Event, seconds: int, *, starts: bool) -> None:
        assert self._served is not None, "it was looked up"
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"} if starts else {}
        first: list[Object] | None = [] if starts else None
        query |= {} if starts else {"resourceVersion": str(self._revision)}
        for data in self._api.lines(self._served, self._namespace, {**query, **self._selection}, seconds):
            if stop.is_set():
                return
            first = self._take(data, first)
        if first is not None:
            raise ServiceUnavailable(f"the list of {self._resource} ended before it was complete")

    def _take(self, data: bytes, first: list[Object] | None) -> list[Object] | None:
        """Process one line of the watch response.

        Return the part of the list that was received until now; None once the list is complete.
        """
        try:
            line = decode_line(data)
            if line.type == "BOOKMARK":
                return self._bookmark(_decode_bookmark(line.object).metadata, first)
            is_error = line.type == "ERROR"
            received = self._error(bytes(line.object)) if is_error else self._ours(Object.from_wire(line.object))
        except (msgspec.MsgspecError, BadRequest) as error:
            raise ServiceUnavailable(f"the watch of {self._resource} sent an invalid event: {error}") from error
        if isinstance(received, ApiError):
            raise received
        if first is not None:
            first.append(received)
            return first
        self._revision = received.revision
        self._queue.put(Changed(self._resource, CHANGES[line.type], received))
        return None

    def _bookmark(self, metadata: _Metadata, first: list[Object] | None) -> list[Object] | None:
        revision = int(metadata.resource_version)
        if first is None:
            self._revision = revision
            self._queue.put(Progress(self._resource, revision))
            return None
        if (metadata.annotations or {}).get(_END_OF_LIST) != "true":
            return first
        self._listed(revision, first)
        return None

    def _error(self, status: bytes) -> ApiError:
        code = msgspec.json.decode(status).get("code", 500)
        return error_of(code, status, f"watch of {self._resource}")

    def _ours(self, obj: Object) -> Object:
        """Return an object with the requested resource, because the plural cannot always be derived from the kind."""
        return obj if obj.resource == self._resource else Object(self._resource, obj.body, obj.revision)

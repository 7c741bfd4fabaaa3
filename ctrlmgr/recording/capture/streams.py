"""Follows one resource of a cluster during a recording.

Guarantees: after an interruption, the watch continues at the last revision that was received. If the server has
compacted that revision, the stream lists the resource again, and sends the new list as a message. The stream of a kind
that is no longer served retries until the stream is stopped. All messages are put on one queue, in the server's order.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from random import Random
from typing import NamedTuple, TypeAlias

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import BadRequest, CtrlmgrError, Expired, NotFound, ServiceUnavailable
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.capture.cluster_client import Cluster, Served, refusal
from ctrlmgr.recording.watch_event import CHANGES, decode_bookmark, decode_line

_FIRST_DELAY, _LONGEST_DELAY = 0.5, 4.0
"""Minimum and maximum seconds between retries; the delay doubles with each retry.

The maximum delay is less than the time for which the recorder waits for watches at the end of a recording.
"""

_SHORTEST_WATCH = 240
"""Minimum seconds of a watch; as in client-go, the maximum is twice the minimum, so that watches do not end at the same
time.
"""

log = structlog.get_logger(__name__)


class Listed(NamedTuple):
    """A message that contains all objects of a resource at a revision."""

    resource: Resource
    revision: Revision
    objects: list[Object]
    at: int


class Changed(NamedTuple):
    """A message that contains a change of one object."""

    resource: Resource
    type: EventType
    object: Object
    at: int


class Progress(NamedTuple):
    """A message that says that all changes up to this revision were delivered."""

    resource: Resource
    revision: Revision


class Missing(NamedTuple):
    """A message that says that a resource is no longer served; it follows all other messages about the resource."""

    resource: Resource


class Failed(NamedTuple):
    """A message that says that a resource cannot be recorded, because of this error."""

    resource: Resource
    error: CtrlmgrError


Message: TypeAlias = Listed | Changed | Progress | Missing | Failed


class _Status(msgspec.Struct):
    code: int = 500


_decode_status = msgspec.json.Decoder(_Status).decode


class Stream:
    """Lists and watches one resource; `run` must be called on its own thread."""

    def __init__(
        self,
        cluster: Cluster,
        served: Served,
        namespace: str,
        queue: SimpleQueue[Message],
        *,
        clock: Clock,
        random: Random,
        begin: Revision | None = None,
    ) -> None:
        """Create a stream that follows `served` in one namespace ("" for all), and puts messages on `queue`.

        For a kind that may not be served yet, `begin` is a revision at which the kind had no objects; 0 if no such
        revision is known.
        """
        self.served = served
        """The resource and its URL path; the recorder replaces this value if another version is served."""
        self.ending = threading.Event()
        """An event that stops only this stream, and no other stream."""
        self._cluster = cluster
        self._comes_and_goes = begin is not None
        self._namespace = namespace
        self._queue = queue
        self._clock = clock
        self._random = random
        # All changes up to this revision are on the queue; 0 if the stream must list the objects first.
        self._revision: Revision = begin or 0

    def run(self, stop: threading.Event) -> None:
        """Follow the resource until `stop` or `ending` is set."""
        resource, delay = self.served.resource, _FIRST_DELAY
        pause = threading.Condition()
        while not stop.is_set() and not self.ending.is_set():
            before = self._revision
            try:
                self._follow(stop)
                continue
            except Expired:
                log.warning("resource version expired, listing again", resource=str(resource), revision=self._revision)
                self._revision = 0
            except ServiceUnavailable as error:
                log.info("retrying list and watch", resource=str(resource), error=str(error), delay=delay)
            except NotFound as error:
                if not self._revision and not self._comes_and_goes:
                    self._queue.put(Failed(resource, error))
                    return
                self._put(Missing(resource))
            except CtrlmgrError as error:
                self._queue.put(Failed(resource, error))
                return
            delay = _FIRST_DELAY if self._revision > before else min(2 * delay, _LONGEST_DELAY)
            with pause:
                self._clock.wait(pause, delay * (0.5 + self._random.random() / 2))

    def _follow(self, stop: threading.Event) -> None:
        if not self._revision:
            revision, objects = self._cluster.list(self.served, self._namespace)
            self._put(Listed(self.served.resource, revision, objects, self._clock.now()))
            self._revision = revision
        seconds = _SHORTEST_WATCH + self._random.randrange(_SHORTEST_WATCH)
        for line in self._cluster.watch(self.served, self._namespace, self._revision, seconds):
            if stop.is_set() or self.ending.is_set():
                return
            self._tell(line)

    def _put(self, message: Message) -> None:
        if not self.ending.is_set():
            self._queue.put(message)

    def _tell(self, data: bytes) -> None:
        resource = self.served.resource
        try:
            line = decode_line(data)
            if line.type == "BOOKMARK":
                self._revision = int(decode_bookmark(line.object).metadata.resource_version)
                self._put(Progress(resource, self._revision))
                return
            if line.type == "ERROR":
                status = bytes(line.object)
                raise refusal(_decode_status(status).code, status, f"watch of {resource}")
            obj = Object.from_wire(line.object)
        except (msgspec.MsgspecError, BadRequest) as error:
            raise ServiceUnavailable(f"the watch of {resource} sent an invalid event: {error}") from error
        self._revision = obj.revision
        self._put(Changed(resource, CHANGES[line.type], obj, self._clock.now()))

"""Records a cluster: a thread for each resource, one that merges, redacts and writes what they say.

Guarantees: the recording holds every change of the chosen resources exactly once, from what there was at its beginning
up to the revision at which it was stopped; whatever is stopped in the middle leaves a file that can be read. Where
everything is recorded, custom kinds are followed as their definitions come and go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from random import Random
from typing import NamedTuple

import structlog

from ctrlmgr import threads
from ctrlmgr.api.resource import DEFINITIONS, Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import CtrlmgrError, NotFound, SettingsError
from ctrlmgr.recording.capture.cluster import Cluster, Served
from ctrlmgr.recording.capture.continuing import Ending
from ctrlmgr.recording.capture.custom import Begun, CustomKinds, Ended, Moved, Step
from ctrlmgr.recording.capture.merge import Merger
from ctrlmgr.recording.capture.redaction import Redaction
from ctrlmgr.recording.capture.rotation import Files
from ctrlmgr.recording.capture.streams import Changed, Failed, Listed, Message, Missing, Progressed, Stream

log = structlog.get_logger(__name__)

_LOOK_UP = 0.2
"""Seconds without a change after which there is time to flush, and to see whether to stop."""

_LAST_WORDS = 15.0
"""Seconds that watches have at the end to tell of what has happened before it."""


class State(NamedTuple):
    """How far a recording has got."""

    changes: int
    revision: Revision
    waiting: int
    """Changes that wait for a watch which has not got as far."""
    size: int
    """Bytes of the file being written."""


class Recorder:
    """Records some resources of a cluster; `run` once."""

    def __init__(
        self,
        cluster: Cluster,
        served: Sequence[Served],
        files: Files,
        *,
        clock: Clock,
        random: Random,
        namespace: str = "",
        redaction: Redaction | None = None,
        follows: bool = False,
        ending: Ending | None = None,
    ) -> None:
        """Record `served`, of one namespace or ("") all, into `files`; `ending` is where these had ended before.

        `follows`: custom kinds, too, that come later; definitions have to be among `served` for that.
        """
        self._cluster = cluster
        self._files = files
        self._clock = clock
        self._random = random
        self._namespace = namespace
        self._redaction = redaction or Redaction(())
        self._queue: SimpleQueue[Message] = SimpleQueue()
        self._merger = Merger([each.resource for each in served])
        if ending is not None:
            self._merger.resume(ending)
        self._kinds = CustomKinds(namespace) if follows else None
        self._streams = {each.resource: self._stream(each) for each in served}
        self._ended: dict[
            Resource, Revision
        ] = {}  # definitions that are gone, whose kind's watch may still have to tell
        self._leave = threading.Event()
        if self._kinds is not None:
            for each in served:
                self._kinds.known(each)

    @property
    def state(self) -> State:
        """How far it has got."""
        return State(self._files.changes, self._files.revision, self._merger.waiting, self._files.size)

    def run(
        self, stop: threading.Event, period: float | None = None, tell: Callable[[State], None] | None = None
    ) -> list[Resource]:
        """Record until `stop` is set, or for `period` seconds once everything has been listed.

        Returns the resources whose last changes the cluster did not tell in time. `tell` is called about five times a
        second. Raises the error of a resource that cannot be recorded.
        """
        for stream in self._streams.values():
            threads.start(f"record {stream.served.resource}", partial(stream.run, self._leave))
        try:
            told, end = self._clock.monotonic(), None
            while not stop.is_set() and (end is None or self._clock.monotonic() < end):
                self._take()
                if end is None and period is not None and self._merger.complete:
                    end = self._clock.monotonic() + period
                if tell and self._clock.monotonic() - told >= _LOOK_UP:
                    told = self._clock.monotonic()
                    tell(self.state)
            return self._wait_for_watches()
        finally:
            self._leave.set()

    def _stream(self, served: Served, begin: Revision | None = None) -> Stream:
        clock, random = self._clock, self._random
        return Stream(self._cluster, served, self._namespace, self._queue, clock=clock, random=random, begin=begin)

    def _take(self) -> None:
        """Take what has come, wait a moment for it if need be, and write what can be written."""
        try:
            self._accept(self._queue.get(timeout=_LOOK_UP))
            while not self._queue.empty():
                self._accept(self._queue.get())
        except Empty:
            pass
        for change in self._merger.ready():
            self._files.write(change._replace(object=self._redaction.applied(change.object)))
        self._files.tick()

    def _accept(self, message: Message) -> None:
        if isinstance(message, Failed):
            raise message.error
        if message.resource not in self._streams:  # of a kind that has ended
            return
        match message:
            case Changed(resource, type_, obj, at):
                self._merger.changed(resource, type_, obj, at)
                if self._kinds is not None and resource == DEFINITIONS:
                    self._follow(self._kinds.changed(type_, obj))
            case Listed(resource, revision, objects, at):
                self._merger.listed(resource, revision, objects, at)
                if self._kinds is not None and resource == DEFINITIONS:
                    self._follow(self._kinds.listed(self._merger.objects(resource), revision))
            case Progressed(resource, revision):
                self._merger.progressed(resource, revision)
            case Missing(resource):
                self._end(resource, self._ended.get(resource, 0))

    def _follow(self, steps: Iterable[Step]) -> None:
        """Begin and end the watches of custom kinds."""
        for step in steps:
            match step:
                case Begun(served, revision) if served.resource not in self._streams:
                    self._merger.begin(served.resource, revision)
                    stream = self._streams[served.resource] = self._stream(served, revision)
                    threads.start(f"record {served.resource}", partial(stream.run, self._leave))
                case Begun(served, _) | Moved(served):  # what had ended goes on where its watch is
                    self._ended.pop(served.resource, None)
                    self._streams[served.resource].served = served
                case Ended(resource, revision):
                    self._ended[resource] = revision
                    if not self._merger.objects(resource):
                        self._end(resource, revision)

    def _end(self, resource: Resource, revision: Revision) -> None:
        """Follow a kind no more that is not served; 0 where its definition is not known to be gone.

        Such a one comes again, unless definitions are not watched: then its recording ends here.
        """
        if not revision and self._kinds is not None:
            return
        if not revision:
            log.warning("it is not served any more and its recording ends here", resource=str(resource))
        self._ended.pop(resource, None)
        self._streams.pop(resource).leave.set()
        self._merger.end(resource, revision, self._clock.now())

    def _wait_for_watches(self) -> list[Resource]:
        """Wait until every watch has told of what there is now: bookmarks may be a minute away.

        Definitions come first, for what they say of kinds. A watch has told everything up to a revision when what
        exists then is what follows from what it has said.
        """
        deadline = self._clock.monotonic() + _LAST_WORDS
        first = [DEFINITIONS] if self._kinds is not None and DEFINITIONS in self._streams else []
        late = self._level(first, deadline) if first else []
        return late or self._level([*self._streams], deadline)

    def _level(self, resources: Sequence[Resource], deadline: float) -> list[Resource]:
        """Wait for some watches, and return which of them have not told everything by the deadline."""
        truths = {}
        try:
            for each in resources:
                with suppress(NotFound):  # a kind whose definition goes at this moment
                    truths[each] = self._cluster.versions(self._streams[each].served, self._namespace)
        except CtrlmgrError:  # it is gone, and with it what it has not told
            return [*resources]
        while True:
            self._take()
            late = [
                resource
                for resource, truth in truths.items()
                if resource in self._streams and not self._is_level(resource, *truth)
            ]
            for resource, (revision, _) in truths.items():
                if resource in self._streams and resource not in late:
                    self._merger.progressed(resource, revision)
            if not late or self._clock.monotonic() > deadline:
                self._take()
                return late

    def _is_level(self, resource: Resource, revision: Revision, versions: Mapping[Key, Revision]) -> bool:
        if self._merger.progress(resource) >= revision:
            return True
        return {key: obj.revision for key, obj in self._merger.objects(resource).items()} == versions


def choose(served: Sequence[Served], names: Sequence[str]) -> list[Served]:
    """Return the resources of these names: plural, `plural.group` or short; `*` is all of them.

    Events are core's unless their group is named: both groups show the same objects. Raises `SettingsError`.
    """
    if "*" in names:
        return [each for each in served if str(each.resource) != "events.events.k8s.io"]
    chosen: dict[Resource, Served] = {}
    for name in names:
        found = [each for each in served if name in (str(each.resource), each.resource.plural, *each.short_names)]
        if not found:
            raise SettingsError(f"--resources: the cluster serves no {name!r} that can be listed and watched")
        first = min(found, key=lambda each: (str(each.resource) != name, each.resource.group != ""))
        chosen[first.resource] = first
    return list(chosen.values())

"""Records a cluster, with one thread per resource and one thread that merges, redacts and writes the changes.

Guarantees: the recording contains every change of the chosen resources exactly once, from the initial state to the
revision at which the recording was stopped. An interrupted recording leaves a readable file. If all resources are
recorded, the recorder follows a custom kind from the creation of its CustomResourceDefinition to its deletion.
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
from ctrlmgr.recording.capture.cluster_client import Cluster, Served
from ctrlmgr.recording.capture.custom_kind_capture import CustomKinds, KindDeleted, KindMoved, KindServed, Step
from ctrlmgr.recording.capture.recording_continuation import RecordingEnd
from ctrlmgr.recording.capture.redaction import Redaction
from ctrlmgr.recording.capture.rotation import Files
from ctrlmgr.recording.capture.streams import Changed, Failed, Listed, Message, Missing, Progress, Stream
from ctrlmgr.recording.capture.watch_merge import Merger

log = structlog.get_logger(__name__)

_LOOK_UP = 0.2
"""Seconds without a change after which the recorder flushes the file and checks whether to stop."""

_LAST_WORDS = 15.0
"""Maximum seconds that the recorder waits, at the end of a recording, until watches have delivered all changes."""


class State(NamedTuple):
    """The progress of a recording."""

    changes: int
    revision: Revision
    waiting: int
    """The number of changes that cannot be written yet, because a slower watch may deliver earlier changes."""
    size: int
    """The size of the current file in bytes."""


class Recorder:
    """Records some resources of a cluster; `run` may be called only once."""

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
        ending: RecordingEnd | None = None,
    ) -> None:
        """Record the resources `served` into `files`; `ending` is the end of an earlier recording to continue.

        Objects are recorded in one namespace; an empty namespace means all namespaces. If `follows` is set, custom
        kinds that are created later are recorded too; `served` must then contain `customresourcedefinitions`.
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
        # deleted definitions of kinds whose watches may still deliver changes
        self._ended: dict[Resource, Revision] = {}
        self._leave = threading.Event()
        if self._kinds is not None:
            for each in served:
                self._kinds.known(each)

    @property
    def state(self) -> State:
        """The progress."""
        return State(self._files.changes, self._files.revision, self._merger.waiting, self._files.size)

    def run(
        self, stop: threading.Event, period: float | None = None, tell: Callable[[State], None] | None = None
    ) -> list[Resource]:
        """Record until `stop` is set, or for `period` seconds after all resources were listed.

        Return the resources for which the cluster did not deliver all changes in time. The callback `tell` is called
        about five times a second. Raises the error for a resource that cannot be recorded.
        """
        for stream in self._streams.values():
            threads.start(f"record {stream.served.resource}", partial(stream.run, self._leave))
        try:
            reported_at, end = self._clock.monotonic(), None
            while not stop.is_set() and (end is None or self._clock.monotonic() < end):
                self._take()
                if end is None and period is not None and self._merger.complete:
                    end = self._clock.monotonic() + period
                if tell and self._clock.monotonic() - reported_at >= _LOOK_UP:
                    reported_at = self._clock.monotonic()
                    tell(self.state)
            return self._wait_for_watches()
        finally:
            self._leave.set()

    def _stream(self, served: Served, begin: Revision | None = None) -> Stream:
        clock, random = self._clock, self._random
        return Stream(self._cluster, served, self._namespace, self._queue, clock=clock, random=random, begin=begin)

    def _take(self) -> None:
        """Process the messages in the queue, waiting briefly if it is empty, and write the changes that are ready."""
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
        if message.resource not in self._streams:  # the message is from the stream of a kind that has ended
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
            case Progress(resource, revision):
                self._merger.progressed(resource, revision)
            case Missing(resource):
                self._end(resource, self._ended.get(resource, 0))

    def _follow(self, steps: Iterable[Step]) -> None:
        """Start and stop the watches of custom kinds as `steps` require."""
        for step in steps:
            match step:
                case KindServed(served, revision) if served.resource not in self._streams:
                    self._merger.begin(served.resource, revision)
                    stream = self._streams[served.resource] = self._stream(served, revision)
                    threads.start(f"record {served.resource}", partial(stream.run, self._leave))
                # If the recorder is about to stop the watch of a kind that is served again, the watch continues.
                case KindServed(served, _) | KindMoved(served):
                    self._ended.pop(served.resource, None)
                    self._streams[served.resource].served = served
                case KindDeleted(resource, revision):
                    self._ended[resource] = revision
                    if not self._merger.objects(resource):
                        self._end(resource, revision)

    def _end(self, resource: Resource, revision: Revision) -> None:
        """Stop following a kind that is no longer served.

        `revision` is 0 if its CustomResourceDefinition may still exist. If so, the kind will be served again later. If
        the recorder does not watch CustomResourceDefinitions, the recording of the kind ends now.
        """
        if not revision and self._kinds is not None:
            return
        if not revision:
            log.warning("resource no longer served, stopped recording it", resource=str(resource))
        self._ended.pop(resource, None)
        self._streams.pop(resource).ending.set()
        self._merger.end(resource, revision, self._clock.now())

    def _wait_for_watches(self) -> list[Resource]:
        """Wait until every watch has delivered the current state of the cluster; bookmarks may arrive a minute late.

        The watch of CustomResourceDefinitions comes first, because it starts and stops the watches of custom kinds. A
        watch has delivered all changes up to a revision if its objects equal the objects that exist at that revision.
        """
        deadline = self._clock.monotonic() + _LAST_WORDS
        first = [DEFINITIONS] if self._kinds is not None and DEFINITIONS in self._streams else []
        late = self._level(first, deadline) if first else []
        return late or self._level([*self._streams], deadline)

    def _level(self, resources: Sequence[Resource], deadline: float) -> list[Resource]:
        """Wait for some watches; return the watches that have not delivered all changes by the deadline."""
        truths = {}
        try:
            for each in resources:
                with suppress(NotFound):  # the kind's definition is being deleted
                    truths[each] = self._cluster.versions(self._streams[each].served, self._namespace)
        except CtrlmgrError:  # the cluster is unavailable
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
    """Return the resources with these names; a name is a plural, `plural.group` or a short name.

    `*` means all resources. The name `events` means the core group's resource unless a group is given, because both
    groups have the same objects. Raises `SettingsError`.
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

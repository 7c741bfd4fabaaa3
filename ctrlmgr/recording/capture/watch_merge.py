"""Merges several watches into one history that contains each change once, in the order of revisions.

Guarantees, if all watches are of one cluster, deliver their changes in order, and share one revision counter:
- The revisions of the merged changes ascend. A change is output only after every watch has reached its revision, so a
  slow watch misses no change.
- The first change of an object is ADDED; repeated events of a resumed watch are dropped.
- If a watch has expired, the differences between its new list and the known objects become changes. If an object is
  missing in the new list, the revision of its deletion is unknown. A deletion that only a list shows gets the last
  unused revision before the list.
- The watch of a custom kind may start and end during the recording.
- If a recording is continued, the differences between its earlier end and the new first lists become changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource, Revision
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.capture.recording_continuation import RecordingEnd
from ctrlmgr.recording.format import ChangeOrigin


class Recorded(NamedTuple):
    """One change in a recording; for DELETED, `object` is the object's last state, at the revision of the deletion."""

    type: EventType
    object: Object
    recorded_at: int
    """The time at which the change was recorded, in microseconds since 1970."""
    made: ChangeOrigin | None = None
    """The author of the change and the reconcile that made it; None for a change from a watch, which contains no
    authors.
    """


class _PendingChange(NamedTuple):
    """A change with the keys that define its order.

    `sure` is False if the exact revision is unknown; the change then has the latest possible revision.
    """

    revision: Revision
    sure: bool
    number: int
    change: Recorded


class _Stream:
    def __init__(self) -> None:
        self.progress: Revision | None = None  # all changes up to this revision are known; None before the first list
        self.objects: dict[Key, Object] = {}  # the objects after the last known change


class Merger:
    """Merges the watches of some resources; only one thread may use an instance."""

    def __init__(self, resources: Sequence[Resource]) -> None:
        """Create a merger that expects a list of each of `resources`, followed by changes."""
        self._streams = {resource: _Stream() for resource in resources}
        self._waiting: list[_PendingChange] = []
        self._number = 0
        self._output_until: Revision = 0  # all changes up to this revision were output
        self._ended: Revision = 0  # the last revision of the watch that ended last
        self._earlier: RecordingEnd | None = None

    def resume(self, ending: RecordingEnd) -> None:
        """Continue an earlier recording of the same cluster; this method must be called before any input."""
        self._earlier, self._output_until = ending, ending.revision
        for resource, stream in self._streams.items():
            stream.objects = dict(ending.objects.get(resource, {}))

    @property
    def complete(self) -> Revision:
        """The revision up to which all changes are known; 0 before all resources were listed."""
        return min((stream.progress or 0 for stream in self._streams.values()), default=self._ended)

    def begin(self, resource: Resource, revision: Revision) -> None:
        """Expect changes of another resource.

        `revision` is a revision at which the resource had no objects; if it is 0, a list of the objects must follow.
        """
        stream = self._streams[resource] = _Stream()
        stream.progress = revision or None

    def end(self, resource: Resource, revision: Revision, recorded_at: int) -> None:
        """Stop expecting changes of a resource, which has no objects left at `revision`."""
        stream = self._streams.pop(resource)
        self._ended = max(revision, stream.progress or 0)
        for old in stream.objects.values():
            self._expect(Recorded(EventType.DELETED, old, recorded_at), self._ended, sure=False)

    def progress(self, resource: Resource) -> Revision:
        """Return the revision that a watch has reached."""
        return self._streams[resource].progress or 0

    def objects(self, resource: Resource) -> Mapping[Key, Object]:
        """Return the objects that exist at the revision that the watch has reached."""
        return self._streams[resource].objects

    def listed(self, resource: Resource, revision: Revision, objects: Sequence[Object], recorded_at: int) -> None:
        """Process a list, which is the first list of a resource or the new list after its watch expired."""
        stream = self._streams[resource]
        before, now = stream.objects, {obj.key: obj for obj in objects}
        if self._earlier is not None and stream.progress is None:
            _check_continues(self._earlier, resource, revision, now)
        for key, obj in now.items():
            old = before.get(key)
            if old is not None and old.uid != obj.uid:
                self._expect(Recorded(EventType.DELETED, old, recorded_at), obj.revision - 1, sure=False)
                old = None
            if old is None or old.revision < obj.revision:
                type_ = EventType.ADDED if old is None else EventType.MODIFIED
                # The resource was found when changes of other resources were already recorded.
                is_late = obj.revision <= self._output_until
                self._expect(Recorded(type_, obj, recorded_at), revision if is_late else obj.revision, sure=not is_late)
        for key, old in before.items():
            if key not in now:
                self._expect(Recorded(EventType.DELETED, old, recorded_at), revision, sure=False)
        stream.objects = now
        stream.progress = max(stream.progress or 0, revision)

    def changed(self, resource: Resource, type: EventType, obj: Object, recorded_at: int) -> None:
        """Process a change from a watch."""
        stream = self._streams[resource]
        if stream.progress is not None and obj.revision <= stream.progress:
            return
        stream.progress = obj.revision
        type_ = type
        if type is EventType.DELETED:
            if stream.objects.pop(obj.key, None) is None:
                return
        else:
            type_ = EventType.MODIFIED if obj.key in stream.objects else EventType.ADDED
            stream.objects[obj.key] = obj
        self._expect(Recorded(type_, obj, recorded_at), obj.revision)

    def progressed(self, resource: Resource, revision: Revision) -> None:
        """Process a bookmark, which says that the watch has sent all changes up to `revision`."""
        stream = self._streams[resource]
        stream.progress = max(stream.progress or 0, revision)

    def ready(self) -> Iterator[Recorded]:
        """Yield the changes that can be written now, in order."""
        bound = self.complete
        self._output_until = max(self._output_until, bound)
        batch: list[_PendingChange] = []
        while self._waiting and self._waiting[0].revision <= bound:
            batch.append(heappop(self._waiting))
        yield from self._placed(batch)

    @property
    def waiting(self) -> int:
        """The number of changes that cannot be written yet, because a slower watch may deliver earlier changes."""
        return len(self._waiting)

    def _placed(self, batch: Sequence[_PendingChange]) -> Iterator[Recorded]:
        """Yield all changes in order; a deletion without a known revision gets an unused revision.

        Enough unused revisions always exist, because the revisions at which the cluster deleted these objects belong to
        no recorded change.
        """
        taken = {each.revision for each in batch if each.sure}
        placed: list[tuple[Revision, Recorded]] = []
        for each in reversed(batch):
            revision = each.revision
            if not each.sure:
                while revision in taken:
                    revision -= 1
                taken.add(revision)
            if self._earlier is not None and revision <= self._earlier.revision:
                raise SettingsError(
                    f"--append: {self._earlier.path}: there are more changes than revisions since its end"
                )
            placed.append((revision, each.change))
        for revision, change in sorted(placed, key=lambda each: each[0]):
            yield change if change.object.revision == revision else change._replace(object=change.object.at(revision))

    def _expect(self, change: Recorded, revision: Revision, *, sure: bool = True) -> None:
        self._number += 1
        heappush(self._waiting, _PendingChange(revision, sure, self._number, change))


def _check_continues(ending: RecordingEnd, resource: Resource, revision: Revision, now: Mapping[Key, Object]) -> None:
    """Raise `SettingsError` if a list is from a cluster other than the recorded one, as far as this can be detected."""
    if revision < ending.revision:
        raise SettingsError(
            f"--append: {ending.path} ends at revision {ending.revision}, but the cluster is at {revision}: it is "
            "another cluster"
        )
    if resource == NAMESPACES:  # these two namespaces exist as long as their cluster
        before = ending.objects.get(NAMESPACES, {})
        for name in ("kube-system", "default"):
            one, other = before.get(Key("", name)), now.get(Key("", name))
            if one is not None and other is not None and one.uid != other.uid:
                raise SettingsError(
                    f"--append: {ending.path} is from another cluster, whose namespace {name} has another uid"
                )

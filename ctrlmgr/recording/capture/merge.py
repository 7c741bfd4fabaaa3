"""Several watches become one history: every change once, in the order of its revision.

Guarantees (what goes in is what one cluster's watches say, each in its own order; revisions are of one counter):
- What comes out is ascending, and nothing comes out before every watch has got that far: no change is ever missed
  because its watch was slower than another.
- An object comes first as ADDED, then as it changes; what a resumed watch says again is left out.
- When a watch has lost its place, what its new list differs in comes out as changes. Objects that are gone were
  deleted at a revision that is not known any more: they get free ones, the last before the list.
- A watch may begin and end on the way, with a kind that comes and goes.
- What goes on from an earlier recording continues it: its first lists are told as changes of what that ended with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource, Revision
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.capture.continuing import Ending
from ctrlmgr.recording.format import Made


class Recorded(NamedTuple):
    """One change as it goes into a recording; for DELETED the last state, at the revision of the deletion."""

    type: EventType
    object: Object
    recorded_at: int
    """Microseconds since 1970."""
    made: Made | None = None
    """How it came about; None where a watch told of it, which does not say."""


class _Waiting(NamedTuple):
    """A change, ordered; `sure` is False for deletions whose revision is only the latest it can have been."""

    revision: Revision
    sure: bool
    number: int
    change: Recorded


class _Stream:
    def __init__(self) -> None:
        self.progress: Revision | None = None  # every change up to here is known; None before the first list
        self.objects: dict[Key, Object] = {}  # as of the last change known


class Merger:
    """Merges the watches of some resources; used by one thread."""

    def __init__(self, resources: Sequence[Resource]) -> None:
        """Expect a list of each of `resources`, and then its changes."""
        self._streams = {resource: _Stream() for resource in resources}
        self._waiting: list[_Waiting] = []
        self._number = 0
        self._told: Revision = 0  # everything up to here has come out
        self._ended: Revision = 0  # of the watch that ended last
        self._earlier: Ending | None = None

    def resume(self, ending: Ending) -> None:
        """Go on where an earlier recording of the same cluster ended; called before anything is taken."""
        self._earlier, self._told = ending, ending.revision
        for resource, stream in self._streams.items():
            stream.objects = dict(ending.objects.get(resource, {}))

    @property
    def complete(self) -> Revision:
        """The revision up to which everything is known; 0 before everything has been listed."""
        return min((stream.progress or 0 for stream in self._streams.values()), default=self._ended)

    def begin(self, resource: Resource, revision: Revision) -> None:
        """Expect changes of one more resource, of which there was nothing up to `revision`; 0: its list comes first."""
        stream = self._streams[resource] = _Stream()
        stream.progress = revision or None

    def end(self, resource: Resource, revision: Revision, recorded_at: int) -> None:
        """Expect no more of a resource: of its objects none were left at `revision`."""
        stream = self._streams.pop(resource)
        self._ended = max(revision, stream.progress or 0)
        for old in stream.objects.values():
            self._expect(Recorded(EventType.DELETED, old, recorded_at), self._ended, sure=False)

    def progress(self, resource: Resource) -> Revision:
        """Return how far one watch has got."""
        return self._streams[resource].progress or 0

    def objects(self, resource: Resource) -> Mapping[Key, Object]:
        """Return what exists as far as its watch has got."""
        return self._streams[resource].objects

    def listed(self, resource: Resource, revision: Revision, objects: Sequence[Object], recorded_at: int) -> None:
        """Take a list: the first, or that of a watch which has lost its place."""
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
                is_late = obj.revision <= self._told  # of a resource that was found when others were long recorded
                self._expect(Recorded(type_, obj, recorded_at), revision if is_late else obj.revision, sure=not is_late)
        for key, old in before.items():
            if key not in now:
                self._expect(Recorded(EventType.DELETED, old, recorded_at), revision, sure=False)
        stream.objects = now
        stream.progress = max(stream.progress or 0, revision)

    def changed(self, resource: Resource, type: EventType, obj: Object, recorded_at: int) -> None:
        """Take a change that a watch tells of."""
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
        """Take a bookmark: the watch has told of everything up to `revision`."""
        stream = self._streams[resource]
        stream.progress = max(stream.progress or 0, revision)

    def ready(self) -> Iterator[Recorded]:
        """Yield what can come out now, in order."""
        bound = self.complete
        self._told = max(self._told, bound)
        batch: list[_Waiting] = []
        while self._waiting and self._waiting[0].revision <= bound:
            batch.append(heappop(self._waiting))
        yield from self._placed(batch)

    @property
    def waiting(self) -> int:
        """How many changes wait for slower watches."""
        return len(self._waiting)

    def _placed(self, batch: Sequence[_Waiting]) -> Iterator[Recorded]:
        """Give deletions without a revision of their own free ones, and return all in order.

        There are always enough: each deletion had one, which none of what is recorded has taken.
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
                    f"--append: {self._earlier.path}: more is new than there are revisions since its end"
                )
            placed.append((revision, each.change))
        for revision, change in sorted(placed, key=lambda each: each[0]):
            yield change if change.object.revision == revision else change._replace(object=change.object.at(revision))

    def _expect(self, change: Recorded, revision: Revision, *, sure: bool = True) -> None:
        self._number += 1
        heappush(self._waiting, _Waiting(revision, sure, self._number, change))


def _check_continues(ending: Ending, resource: Resource, revision: Revision, now: Mapping[Key, Object]) -> None:
    """Raise `SettingsError` if a list is not of the cluster that was recorded, as far as can be told."""
    if revision < ending.revision:
        raise SettingsError(
            f"--append: {ending.path} ends at revision {ending.revision}, the cluster is at {revision}: it is another"
        )
    if resource == NAMESPACES:  # two are there as long as their cluster is
        before = ending.objects.get(NAMESPACES, {})
        for name in ("kube-system", "default"):
            one, other = before.get(Key("", name)), now.get(Key("", name))
            if one is not None and other is not None and one.uid != other.uid:
                raise SettingsError(f"--append: {ending.path} is of another cluster: its namespace {name} is another")

"""Files in volumes that several pods see: hostPath volumes of a node, and claims.

Guarantees: a change that is found later never alters the past of another pod. Other pods see a change from its own
moment on or, if one of them has been looked at since, from the latest such look on. All of it follows from the pods
that exist; changes of deleted pods are known until the process ends.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from operator import attrgetter
from threading import Lock
from typing import Final, NamedTuple

from ctrlmgr.controllers.simulated_nodes.clockwork import PodTime
from ctrlmgr.simulation.volumes import Entry

_MOST: Final = 64
"""Changes of one file that are kept."""


class _Change(NamedTuple):
    seen_from: int
    """In microseconds since 1970."""
    uid: str
    """Of the pod that wrote it."""
    moment: int
    """When it did."""
    text: str | None


class SharedFiles:
    """The files of all places: each a node or a claim (`volumes.place_of`)."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = Lock()
        self._changes: dict[str, dict[str, list[_Change]]] = {}
        # By place and pod: the last moment at which the pod was looked at, and so what is there.
        self._looked: dict[str, dict[str, int]] = {}

    def seen_by(self, uid: str, time: PodTime, now: int | None) -> Seen:
        """Return what a pod sees that is looked at `now` (microseconds since 1970); None: the look does not count."""
        return Seen(self, uid, time, now)

    def note(self, uid: str, time: PodTime, now: int, told: Iterable[tuple[str, str, Entry]]) -> None:
        """Note what a pod has written by now."""
        for place, path, entry in told:
            moment = time.moment(entry.at)
            if moment <= now:
                with self._lock:
                    self._add(place, path, uid, moment, entry.text)

    def drop(self, place: str) -> None:
        """Forget a place that is gone."""
        with self._lock:
            self._changes.pop(place, None)
            self._looked.pop(place, None)

    def of(self, place: str, uid: str, now: int | None) -> list[tuple[str, int, str | None]]:
        """Return what others than a pod changed at a place: each path, from when on it is seen, and the text."""
        with self._lock:
            if now is not None:
                self._looked.setdefault(place, {})[uid] = now
            files = self._changes.get(place, {})
            return [
                (path, each.seen_from, each.text)
                for path, changes in files.items()
                for each in changes
                if each.uid != uid
            ]

    def _add(self, place: str, path: str, uid: str, moment: int, text: str | None) -> None:
        changes = self._changes.setdefault(place, {}).setdefault(path, [])
        if any((each.uid, each.moment, each.text) == (uid, moment, text) for each in changes):
            return
        looked = max((at for other, at in self._looked.get(place, {}).items() if other != uid), default=0)
        insort(changes, _Change(max(moment, looked), uid, moment, text), key=attrgetter("seen_from"))
        del changes[:-_MOST]


class Seen:
    """What one pod sees of what others wrote; a `volumes.Shared`."""

    def __init__(self, files: SharedFiles, uid: str, time: PodTime, now: int | None) -> None:
        """Look at `files` for a pod."""
        self._files = files
        self._uid = uid
        self._time = time
        self._now = now

    def of(self, place: str) -> Iterator[tuple[str, float, str | None]]:
        """Yield the changes at a place by the time of the pod."""
        for path, moment, text in self._files.of(place, self._uid, self._now):
            yield path, self._time.seconds(moment), text

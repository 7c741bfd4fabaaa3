"""Files in volumes that several pods share: the volumes are hostPath volumes of a node, and claims.

Guarantees: if a file change is computed late, it never alters what another pod has already seen. Normally, other pods
see a change from the time of the change. If another pod was evaluated after that time, other pods see the change from
the time of the evaluation. The shared files are computed from the existing pods. Changes that deleted pods made are
kept until the process ends.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from operator import attrgetter
from threading import Lock
from typing import Final, NamedTuple

from ctrlmgr.controllers.simulated_nodes.simulated_time import PodTime
from ctrlmgr.simulation.simulated_files import Entry

_MOST: Final = 64
"""The maximum number of changes that are kept of one file."""


class _Change(NamedTuple):
    seen_from: int
    """The time from which other pods see the change, in microseconds since 1970."""
    uid: str
    """The uid of the pod that changed the file."""
    moment: int
    """The time when the pod changed the file, in microseconds since 1970."""
    text: str | None


class SharedFiles:
    """The shared files, grouped by the place of their volume: a node or a claim (`volumes.place_of`)."""

    def __init__(self) -> None:
        """Create an instance without any files."""
        self._lock = Lock()
        self._changes: dict[str, dict[str, list[_Change]]] = {}
        # The last time at which each pod was evaluated, keyed by place and pod. Up to this time, the files that the pod
        # saw must not change.
        self._looked: dict[str, dict[str, int]] = {}

    def seen_by(self, uid: str, time: PodTime, now: int | None) -> PodFileView:
        """Return the shared files as seen by a pod that is evaluated at `now` (µs since 1970).

        If `now` is None, the evaluation is not recorded.
        """
        return PodFileView(self, uid, time, now)

    def note(self, uid: str, time: PodTime, now: int, entries: Iterable[tuple[str, str, Entry]]) -> None:
        """Record the files that a pod has written up to `now`."""
        for place, path, entry in entries:
            moment = time.moment(entry.at)
            if moment <= now:
                with self._lock:
                    self._add(place, path, uid, moment, entry.text)

    def drop(self, place: str) -> None:
        """Remove the changed files of a pod or volume that no longer exists."""
        with self._lock:
            self._changes.pop(place, None)
            self._looked.pop(place, None)

    def of(self, place: str, uid: str, now: int | None) -> list[tuple[str, int, str | None]]:
        """Return the file changes that other pods made at a place.

        Each change contains the path, the time from which other pods see it, and the content.
        """
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


class PodFileView:
    """The files that other pods wrote, from the point of view of one pod (implements `simulated_files.Shared`)."""

    def __init__(self, files: SharedFiles, uid: str, time: PodTime, now: int | None) -> None:
        """Create a view of `files` from the point of view of one pod."""
        self._files = files
        self._uid = uid
        self._time = time
        self._now = now

    def of(self, place: str) -> Iterator[tuple[str, float, str | None]]:
        """Yield the file changes at a place; times are in seconds of the pod's time."""
        for path, moment, text in self._files.of(place, self._uid, self._now):
            yield path, self._time.seconds(moment), text

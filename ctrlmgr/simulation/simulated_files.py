"""Simulates the files in a container's root and in its mounted volumes, for any point in time.

Guarantees: other containers see a write to a volume from the time of the write. A container's root is empty at the
start of each run. The files of an emptyDir volume exist as long as the volume's pod, and the files of a hostPath volume
as long as the node. The files of a PersistentVolumeClaim exist as long as the claim. Other pods can write to hostPath
volumes and PersistentVolumeClaims (`Shared`). A `downwardAPI` volume contains fields of the volume's pod. The content
of other volumes (ConfigMaps, Secrets, …) is not simulated: every file exists and is empty.

Times are in seconds of the pod's life.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from copy import copy
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

from ctrlmgr.simulation.pod_fields import files_of

OTHERS: Final = ""
"""The author of the changes that other pods made, and of the initial content of a volume."""


class Entry(NamedTuple):
    """A change of a file by a container, which either wrote the file or removed it.

    If the file was removed, the text is None.
    """

    at: float
    author: str
    text: str | None


class Shared(Protocol):
    """The changes that other pods made in volumes which they share with this pod."""

    def of(self, place: str) -> Iterable[tuple[str, float, str | None]]:
        """Return the changes of files at a place: the path, the time and the text of each.

        The text of a removed file is None.
        """


class Journal:
    """The files of a volume or of a container's root, with all changes of these files."""

    def __init__(self, *, is_opaque: bool = False) -> None:
        """Create a journal without files; if `is_opaque` is set, every file exists and is empty."""
        self._default = "" if is_opaque else None
        self._entries: dict[str, list[Entry]] = {}

    def read(self, path: str, now: float) -> str | None:
        """Return the content of a file at a given time; None if the file does not exist at that time."""
        entries = self._entries.get(path, ())
        found = bisect_right(entries, now, key=attrgetter("at"))
        return entries[found - 1].text if found else self._default

    def write(self, path: str, entry: Entry) -> None:
        """Record a change; if two changes have the same time, the later call has precedence."""
        entries = self._entries.setdefault(path, [])
        entries.insert(bisect_right(entries, entry.at, key=attrgetter("at")), entry)

    def keep(self, author: str, until: float) -> None:
        """Remove the changes that an author made after a given time, because the author had ended by that time."""
        for path, entries in self._entries.items():
            self._entries[path] = [each for each in entries if each.author != author or each.at <= until]

    def paths(self, now: float) -> Iterator[str]:
        """Yield the files that exist at a given time."""
        return (path for path in self._entries if self.read(path, now) is not None)

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield all changes of files."""
        return ((path, each) for path, entries in self._entries.items() for each in entries)


class Volume(NamedTuple):
    """The files of a volume, which are a folder in a journal of changes."""

    journal: Journal
    folder: str = ""
    is_shared: bool = False
    """Whether other pods can also see the volume."""


class Mount(NamedTuple):
    """A volume that is mounted in a container, at a path without a trailing slash."""

    path: str
    volume: Volume
    is_read_only: bool = False


class Volumes:
    """The volumes of a pod."""

    def __init__(self, pod: Mapping[str, Any], shared: Shared | None, now: float) -> None:
        """Read the volumes of a pod.

        The argument `shared` contains the changes of other pods up to `now`; it is None if there are no such changes.
        """
        self._pod = pod
        self._declared = {each["name"]: each for each in pod["spec"].get("volumes") or ()}
        self._shared = shared
        self._found: dict[str, Volume] = {}
        self._places: dict[str, Journal] = {}
        self.known_until = now
        self.next_look: float | None = None
        """The next time at which the pod reads a shared file; other pods may have changed the file by then."""

    def mounts(self, container: Mapping[str, Any], variables: Mapping[str, str]) -> list[Mount]:
        """Return the mounts of a container, with the deepest paths first."""
        found = []
        for each in container.get("volumeMounts") or ():
            volume = self._volume(each["name"])
            path = each.get("subPath") or substituted(each.get("subPathExpr") or "", variables)
            if path:
                volume = volume._replace(folder=posixpath.normpath(f"{volume.folder}/{path}").lstrip("/"))
            found.append(Mount(each["mountPath"].rstrip("/"), volume, bool(each.get("readOnly"))))
        return sorted(found, key=lambda mount: -len(mount.path))

    def note_look(self, at: float) -> None:
        """Record a read of a shared file."""
        if at > self.known_until:
            self.next_look = at if self.next_look is None else min(at, self.next_look)

    def keep(self, author: str, until: float = -1.0) -> None:
        """Remove the changes that a container made after a given time; by default, remove all changes that it made."""
        for journal in self._journals():
            journal.keep(author, until)

    def written(self) -> dict[int, list[tuple[str, Entry]]]:
        """Return all changes, so that two computations can be compared."""
        return {number: [*journal.entries()] for number, journal in enumerate(self._journals())}

    def shared_changes(self) -> list[tuple[str, str, Entry]]:
        """Return this pod's changes in shared volumes: the place, the path and the change of each."""
        found = ((place, path, each) for place, journal in self._places.items() for path, each in journal.entries())
        return [each for each in found if each[2].author != OTHERS]

    def _journals(self) -> list[Journal]:
        own = [volume.journal for volume in self._found.values() if not volume.is_shared]
        return [*own, *self._places.values()]

    def _volume(self, name: str) -> Volume:
        if name not in self._found:
            place, folder = place_of(self._pod, self._declared.get(name) or {"name": name, "emptyDir": {}})
            self._found[name] = Volume(self._place(place), folder, is_shared=True) if place else self._own(name)
        return self._found[name]

    def _own(self, name: str) -> Volume:
        declared = self._declared.get(name) or {"emptyDir": {}}
        journal = Journal(is_opaque="emptyDir" not in declared)
        for path, text in files_of(self._pod, declared):
            journal.write(path, Entry(0.0, OTHERS, text))
        return Volume(journal)

    def _place(self, place: str) -> Journal:
        if place not in self._places:
            journal = self._places[place] = Journal()
            for path, at, text in self._shared.of(place) if self._shared is not None else ():
                journal.write(path, Entry(at, OTHERS, text))
        return self._places[place]


def place_of(pod: Mapping[str, Any], volume: Mapping[str, Any]) -> tuple[str, str]:
    """Return the shared place of a volume's files, and the folder within that place.

    The place is empty if the volume is private.
    """
    namespace, claim = pod["metadata"].get("namespace", ""), volume.get("persistentVolumeClaim")
    if volume.get("hostPath"):
        return f"node/{pod['spec'].get('nodeName', '')}", volume["hostPath"]["path"].strip("/")
    if claim:
        return f"claim/{namespace}/{claim['claimName']}", ""
    if volume.get("ephemeral"):
        return f"claim/{namespace}/{pod['metadata']['name']}-{volume['name']}", ""
    return "", ""


def is_sharing(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod has volumes that other pods may see."""
    return any(place_of(pod, each)[0] for each in pod["spec"].get("volumes") or ())


def substituted(text: str, variables: Mapping[str, str]) -> str:
    """Return a string in which variables `$(NAME)` are replaced by their values."""
    for name, value in variables.items():
        text = text.replace(f"$({name})", value)
    return text


class ReadOnly(Exception):
    """Raised if a file cannot be written; the argument is the file's path."""


class Files(MutableMapping[str, str]):
    """The files that one run of a container can read, by absolute path; `now` is the time of the reads."""

    def __init__(
        self,
        author: str = "c",
        start: float = 0.0,
        mounts: Sequence[Mount] = (),
        volumes: Volumes | None = None,
        *,
        is_read_only: bool = False,
    ) -> None:
        """Begin a run of the container `author`; if `is_read_only` is set, the container's root is read-only."""
        self.start = self.now = start
        self._author = author
        self._mounts = [*mounts, Mount("", Volume(Journal()), is_read_only)]
        self._volumes = volumes
        self.writes = 0
        """The number of times that this run has written a file."""
        # The changes that were made in a copy, keyed by path. A content of None means that the file was removed.
        self._changed: dict[str, str | None] | None = None

    def at(self, now: float) -> dict[str, str]:
        """Return the files at a given time."""
        self.now = now
        return dict(self)

    def copied(self, now: float, changed: Mapping[str, str | None] | None = None) -> Files:
        """Return a copy of the files at a given time.

        Changes of the copy have no effect on these files. The argument `changed` contains the changes of an earlier
        copy: the new text of each path, or None for a removed file.
        """
        found = copy(self)
        found.start = found.now = now
        found._changed = {**(changed or {})}
        return found

    @property
    def changed(self) -> Mapping[str, str | None]:
        """The changes of this copy, in the form that `copied` accepts."""
        return self._changed or {}

    def changes(self) -> list[float]:
        """Return the times of changes after the start of the run."""
        found = (each.at for mount in self._mounts for _, each in mount.volume.journal.entries())
        return sorted({each for each in found if each > self.start})

    def next_change(self, after: float) -> float | None:
        """Return the next time at which files may change; None if the files never change.

        Shared files may change at every time for which the changes of other pods are not known yet.
        """
        found = [each for each in self.changes() if each > after]
        if self._volumes is not None and any(each.volume.is_shared for each in self._mounts):
            found += [each for each in (self._volumes.known_until,) if each > after]
        return min(found, default=None)

    def is_folder(self, path: str) -> bool:
        """Return whether a folder exists."""
        below = f"{path.rstrip('/')}/"
        return any(f"{mount.path}/".startswith(below) for mount in self._mounts) or any(
            each.startswith(below) for each in self
        )

    def __getitem__(self, path: str) -> str:
        mount, inner = self._find(path)
        found = mount.volume.journal.read(inner, self.now)
        if self._changed is not None:
            found = self._changed.get(path, found)
        if found is None:
            raise KeyError(path)
        return found

    def __setitem__(self, path: str, text: str) -> None:
        self._write(path, text)

    def __delitem__(self, path: str) -> None:
        self._write(path, None)

    def __iter__(self) -> Iterator[str]:
        changed = self._changed or {}
        yield from (path for path, text in changed.items() if text is not None)
        yield from (path for path in self._stored() if path not in changed)

    def _stored(self) -> Iterator[str]:
        for mount in self._mounts:
            folder = f"{mount.volume.folder}/" if mount.volume.folder else ""
            self._note(mount)
            for each in [*mount.volume.journal.paths(self.now)]:
                path = f"{mount.path}/{each[len(folder) :]}"
                if each.startswith(folder) and self._find(path)[0] is mount:
                    yield path

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _find(self, path: str) -> tuple[Mount, str]:
        for mount in self._mounts:
            if path == mount.path or path.startswith(f"{mount.path}/"):
                self._note(mount)
                inner = path[len(mount.path) :].strip("/")
                return mount, "/".join(each for each in (mount.volume.folder, inner) if each)
        raise KeyError(path)

    def _note(self, mount: Mount) -> None:
        if mount.volume.is_shared and self._volumes is not None:
            self._volumes.note_look(self.now)

    def _write(self, path: str, text: str | None) -> None:
        mount, inner = self._find(path)
        if mount.is_read_only and not path.startswith("/dev/"):
            raise ReadOnly(path)
        self.writes += 1
        if self._changed is not None:
            self._changed[path] = text
            return
        mount.volume.journal.write(inner, Entry(self.now, self._author, text))

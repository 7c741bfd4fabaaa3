"""Files: what a container sees of its own root, and of the volumes that are mounted in it, at each moment.

Guarantees: other containers see a write to a volume from the moment of the write on. The root of a container begins
empty with each of its runs; emptyDir volumes live as long as their pod, hostPath volumes as long as their node, and
claims as long as themselves: other pods write to those, too (`Shared`). A volume shows fields of its pod
(`downwardAPI`). All other content of volumes (ConfigMaps, Secrets, …) is not simulated: each file is there, and empty.

Moments are seconds of the pod's life.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from copy import copy
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

from ctrlmgr.simulation.fields import files_of

OTHERS: Final = ""
"""The author of all changes by other pods, and of what a volume begins with."""


class Entry(NamedTuple):
    """A change of a file: written, or removed (no text), by a container."""

    at: float
    author: str
    text: str | None


class Shared(Protocol):
    """The changes of other pods in volumes that they share with this one."""

    def of(self, place: str) -> Iterable[tuple[str, float, str | None]]:
        """Return the changes of files at a place: each path, moment and text (None: removed)."""


class Journal:
    """The files of a volume, or of a container's root, with all that became of them."""

    def __init__(self, *, is_opaque: bool = False) -> None:
        """Begin empty; in one that `is_opaque`, whatever is asked for is there, and empty."""
        self._default = "" if is_opaque else None
        self._entries: dict[str, list[Entry]] = {}

    def read(self, path: str, now: float) -> str | None:
        """Return the content of a file at a moment, None if it is not there."""
        entries = self._entries.get(path, ())
        found = bisect_right(entries, now, key=attrgetter("at"))
        return entries[found - 1].text if found else self._default

    def write(self, path: str, entry: Entry) -> None:
        """Note a change; of two at the same moment the one that is noted later counts."""
        entries = self._entries.setdefault(path, [])
        entries.insert(bisect_right(entries, entry.at, key=attrgetter("at")), entry)

    def keep(self, author: str, until: float) -> None:
        """Forget what an author wrote after a moment: the author had ended by then."""
        for path, entries in self._entries.items():
            self._entries[path] = [each for each in entries if each.author != author or each.at <= until]

    def paths(self, now: float) -> Iterator[str]:
        """Yield the files that are there at a moment."""
        return (path for path in self._entries if self.read(path, now) is not None)

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield all changes."""
        return ((path, each) for path, entries in self._entries.items() for each in entries)


class Volume(NamedTuple):
    """Where the files of a volume are: below a folder of a journal."""

    journal: Journal
    folder: str = ""
    is_shared: bool = False
    """Whether other pods see it, too."""


class Mount(NamedTuple):
    """A volume in a container, at a path without a slash at its end."""

    path: str
    volume: Volume
    is_read_only: bool = False


class Volumes:
    """The volumes of a pod."""

    def __init__(self, pod: Mapping[str, Any], shared: Shared | None, now: float) -> None:
        """Take them from the pod; `shared` has the changes of other pods up to `now`, None: there are none."""
        self._pod = pod
        self._declared = {each["name"]: each for each in pod["spec"].get("volumes") or ()}
        self._shared = shared
        self._found: dict[str, Volume] = {}
        self._places: dict[str, Journal] = {}
        self.known_until = now
        self.next_look: float | None = None
        """When a shared file is looked at next: by then others may have changed it."""

    def mounts(self, container: Mapping[str, Any], variables: Mapping[str, str]) -> list[Mount]:
        """Return what is mounted in a container, the deepest paths first."""
        found = []
        for each in container.get("volumeMounts") or ():
            volume = self._volume(each["name"])
            path = each.get("subPath") or substituted(each.get("subPathExpr") or "", variables)
            if path:
                volume = volume._replace(folder=posixpath.normpath(f"{volume.folder}/{path}").lstrip("/"))
            found.append(Mount(each["mountPath"].rstrip("/"), volume, bool(each.get("readOnly"))))
        return sorted(found, key=lambda mount: -len(mount.path))

    def note_look(self, at: float) -> None:
        """Note that a shared file is looked at."""
        if at > self.known_until:
            self.next_look = at if self.next_look is None else min(at, self.next_look)

    def keep(self, author: str, until: float = -1.0) -> None:
        """Forget the changes of a container after a moment; all of them if none is given."""
        for journal in self._journals():
            journal.keep(author, until)

    def written(self) -> dict[int, list[tuple[str, Entry]]]:
        """Return all that is in them, to be compared."""
        return {number: [*journal.entries()] for number, journal in enumerate(self._journals())}

    def told(self) -> list[tuple[str, str, Entry]]:
        """Return the changes of this pod in shared volumes: each place, path and change."""
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
    """Return which files a volume shows that other pods see, too ("": none), and in which folder of theirs."""
    namespace, claim = pod["metadata"].get("namespace", ""), volume.get("persistentVolumeClaim")
    if volume.get("hostPath"):
        return f"node/{pod['spec'].get('nodeName', '')}", volume["hostPath"]["path"].strip("/")
    if claim:
        return f"claim/{namespace}/{claim['claimName']}", ""
    if volume.get("ephemeral"):
        return f"claim/{namespace}/{pod['metadata']['name']}-{volume['name']}", ""
    return "", ""


def is_sharing(pod: Mapping[str, Any]) -> bool:
    """Say whether a pod has volumes that other pods may see."""
    return any(place_of(pod, each)[0] for each in pod["spec"].get("volumes") or ())


def substituted(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with the values of variables, which are written `$(NAME)`."""
    for name, value in variables.items():
        text = text.replace(f"$({name})", value)
    return text


class ReadOnly(Exception):
    """A file cannot be written; says which."""


class Files(MutableMapping[str, str]):
    """What one run of a container sees, by absolute paths; `now` is the moment at which it is looked at."""

    def __init__(
        self,
        author: str = "c",
        start: float = 0.0,
        mounts: Sequence[Mount] = (),
        volumes: Volumes | None = None,
        *,
        is_read_only: bool = False,
    ) -> None:
        """Begin a run of the container `author`; `is_read_only` is its root."""
        self.start = self.now = start
        self._author = author
        self._mounts = [*mounts, Mount("", Volume(Journal()), is_read_only)]
        self._volumes = volumes
        self.writes = 0
        """How often something was written."""
        # By path what was changed in a copy, None: removed.
        self._changed: dict[str, str | None] | None = None

    def at(self, now: float) -> dict[str, str]:
        """Return the files as they are at a moment."""
        self.now = now
        return dict(self)

    def copied(self, now: float) -> Files:
        """Return the files as they are at a moment, to be changed without effect."""
        found = copy(self)
        found.start = found.now = now
        found._changed = {}
        return found

    def changes(self) -> list[float]:
        """Return when something changes after the start."""
        found = (each.at for mount in self._mounts for _, each in mount.volume.journal.entries())
        return sorted({each for each in found if each > self.start})

    def next_change(self, after: float) -> float | None:
        """Return when files may be different after a moment, None if never.

        Files that are shared with other pods may be so once the changes of those pods are not known yet.
        """
        found = [each for each in self.changes() if each > after]
        if self._volumes is not None and any(each.volume.is_shared for each in self._mounts):
            found += [each for each in (self._volumes.known_until,) if each > after]
        return min(found, default=None)

    def is_folder(self, path: str) -> bool:
        """Say whether there is such a folder."""
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

"""The history of a run, as its participants saw it: requests, times, and responses.

Times are nanoseconds of one monotonic clock, the runner's. A history can be written to a file and judged again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

SECOND = 1_000_000_000
NEVER = 1 << 62
"""The return time of a request without a response."""

LAST = "last-"
"""What the ids of the writes at the very end begin with."""

BOOKMARK = "BOOKMARK"
ERROR = "ERROR"


class Selection(NamedTuple):
    """Which objects of a resource: of one namespace (empty: all), with one name (empty: all), with such a label."""

    namespace: str = ""
    name: str = ""
    operator: str = ""
    """`in` or `notin` for the label `color`; empty: whatever it is."""
    colors: tuple[str, ...] = ()

    def matches(self, namespace: str, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether an object is selected."""
        if self.namespace not in ("", namespace) or self.name not in ("", name):
            return False
        return not self.operator or (labels.get("color") in self.colors) == (self.operator == "in")

    @property
    def query(self) -> dict[str, str]:
        """The same as parameters of a request; the namespace is in its path."""
        query = {"fieldSelector": f"metadata.name={self.name}"} if self.name else {}
        if self.operator:
            query["labelSelector"] = f"color {self.operator} ({','.join(self.colors)})"
        return query


class Item(NamedTuple):
    """An object somebody was shown: where it is, at which revision, and a digest of what it says."""

    namespace: str
    name: str
    revision: int
    digest: str


class Write(msgspec.Struct, kw_only=True):
    """One attempt to change one object; `id` is in the event that it became, if it became one."""

    id: str
    server: int
    verb: str
    resource: str
    namespace: str
    name: str
    called: int
    expected: int = 0
    """The revision the object had to be at, 0 for whichever."""
    returned: int = NEVER
    code: int = 0
    """The answer's status; 0: there was no answer, and nobody knows what came of it."""
    revision: int = 0
    """The revision of the object in the answer, 0 if that did not say."""
    message: str = ""
    """What was said to have gone wrong."""

    @property
    def acknowledged(self) -> bool:
        """Return whether it was said to have been done."""
        return 200 <= self.code < 300

    @property
    def refused(self) -> bool:
        """Return whether it was said not to have been done, and never to be."""
        return 400 <= self.code < 500


class Page(msgspec.Struct):
    """One answer to a read: of a list, a page; of a single object, the object, with its own revision."""

    called: int
    returned: int
    code: int
    revision: int
    items: list[Item]


class Read(msgspec.Struct, kw_only=True):
    """One reading of a list or of one object (`get`), in one or more pages."""

    server: int
    resource: str
    selection: Selection
    get: bool = False
    version: str = ""
    match: str = ""
    limit: int = 0
    after: str = ""
    """The path after which it began, when it went on with what was left of a list that had expired."""
    pages: list[Page] = []
    whole: bool = False
    """Whether there was an answer to every page."""

    @property
    def is_newest(self) -> bool:
        """Return whether the newest state was asked for."""
        return not self.version


class Delivery(NamedTuple):
    """One event of a watch; of a bookmark only the revision counts, of an error its code stands there."""

    type: str
    revision: int
    namespace: str
    name: str
    digest: str
    at: int
    initial_end: bool = False


class Watch(msgspec.Struct, kw_only=True):
    """One stream, from the request to its end."""

    server: int
    resource: str
    selection: Selection
    version: str
    called: int
    initial: bool | None = None
    """`sendInitialEvents`, if that was asked for."""
    bookmarks: bool = False
    timeout: int = 0
    """`timeoutSeconds`, 0 if it was not given."""
    informer: str = ""
    """Whose stream it is, if it is one of several that one informer reads."""
    listed: list[Item] | None = None
    """Of an informer's first stream: the list it goes on from, empty if the stream itself begins with the objects."""
    slow: bool = False
    """Whether its reader stopped reading for a while, so that it may have been cut off."""
    code: int = 0
    deliveries: list[Delivery] = []
    ended: str = ""
    """`clean` (with the last chunk), `cut` (without), `left` (by us)."""
    ended_at: int = NEVER


class Compaction(msgspec.Struct):
    """One compaction: what it was to forget."""

    before: int
    called: int
    returned: int


class Fault(msgspec.Struct):
    """Something that was done to a server (-1: to the database) and may have shown between these moments."""

    kind: str
    server: int
    began: int
    ended: int


class Logged(msgspec.Struct, frozen=True):
    """One event of the log."""

    revision: int
    previous: int
    type: str
    resource: str
    namespace: str
    name: str
    uid: str
    labels: dict[str, str]
    digest: str
    write: str
    """The id of the write that it comes from; empty if it is none of ours."""


class History(msgspec.Struct):
    """A whole run."""

    seed: int
    began: int
    writes: list[Write] = []
    reads: list[Read] = []
    watches: list[Watch] = []
    compactions: list[Compaction] = []
    faults: list[Fault] = []
    log: list[Logged] = []
    tracebacks: list[str] = []
    """What servers logged of what they had not expected."""

    def save(self, path: Path) -> None:
        """Write it to a file."""
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def load(cls, path: Path) -> History:
        """Read it from a file."""
        return msgspec.json.decode(path.read_bytes(), type=cls)


def digest_of(fields: dict[str, Any]) -> str:
    """Return a digest of what an object says, whatever its revision."""
    metadata = {name: value for name, value in fields["metadata"].items() if name != "resourceVersion"}
    content = msgspec.json.encode({**fields, "metadata": metadata}, order="sorted")
    return hashlib.blake2b(content, digest_size=8).hexdigest()

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
"""The prefix of the ids of the writes at the very end."""

BOOKMARK = "BOOKMARK"
ERROR = "ERROR"


class Selection(NamedTuple):
    """The selected objects of a resource: of one namespace (empty: all), with one name (empty:
    all), with this label.
    """

    namespace: str = ""
    name: str = ""
    operator: str = ""
    """`in` or `notin` for the label `color`; empty: any color."""
    colors: tuple[str, ...] = ()

    def matches(self, namespace: str, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether an object is selected."""
        if self.namespace not in ("", namespace) or self.name not in ("", name):
            return False
        return not self.operator or (labels.get("color") in self.colors) == (self.operator == "in")

    @property
    def query(self) -> dict[str, str]:
        """The selection as query parameters of a request; the namespace is in its path."""
        query = {"fieldSelector": f"metadata.name={self.name}"} if self.name else {}
        if self.operator:
            query["labelSelector"] = f"color {self.operator} ({','.join(self.colors)})"
        return query


class Item(NamedTuple):
    """An object in an answer: its key, its revision, and a digest of its content."""

    namespace: str
    name: str
    revision: int
    digest: str


class Write(msgspec.Struct, kw_only=True):
    """One attempt to change one object; the `id` is in the resulting event."""

    id: str
    server: int
    verb: str
    resource: str
    namespace: str
    name: str
    called: int
    expected: int = 0
    """The required revision of the object, 0 for any."""
    returned: int = NEVER
    code: int = 0
    """The status of the answer; 0: there was no answer, and the result is unknown."""
    revision: int = 0
    """The revision of the object in the answer, 0 if the answer has none."""
    message: str = ""
    """The message of an error."""

    @property
    def acknowledged(self) -> bool:
        """Return whether the write was acknowledged."""
        return 200 <= self.code < 300

    @property
    def refused(self) -> bool:
        """Return whether the write was refused for certain."""
        return 400 <= self.code < 500


class Page(msgspec.Struct):
    """One answer to a read: a page of a list, or a single object with its own revision."""

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
    """The path at which the read began, if it continued the rest of an expired list."""
    pages: list[Page] = []
    whole: bool = False
    """Whether every page was answered."""

    @property
    def is_newest(self) -> bool:
        """Return whether the newest state was requested."""
        return not self.version


class Delivery(NamedTuple):
    """One event of a watch; a bookmark has only a revision, and an error has its code instead."""

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
    """`sendInitialEvents`, if it was requested."""
    bookmarks: bool = False
    timeout: int = 0
    """`timeoutSeconds`, 0 if it was not given."""
    informer: str = ""
    """The informer of the stream, if it is one of several streams of one informer."""
    listed: list[Item] | None = None
    """For an informer's first stream: the preceding list, empty if the stream itself begins with the objects."""
    slow: bool = False
    """Whether its reader paused for a while, so that the server may have disconnected it."""
    code: int = 0
    deliveries: list[Delivery] = []
    ended: str = ""
    """`clean` (with the last chunk), `cut` (without it), `left` (by the client)."""
    ended_at: int = NEVER


class Compaction(msgspec.Struct):
    """One compaction, with its revision."""

    before: int
    called: int
    returned: int


class Fault(msgspec.Struct):
    """A fault of a server (-1: of the database), with the moments between which it may have had effects."""

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
    """The id of the write that caused it; empty if it is not from a writer of the run."""


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
    """Unexpected errors in the servers' logs."""

    def save(self, path: Path) -> None:
        """Write the history to a file."""
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def load(cls, path: Path) -> History:
        """Read a history from a file."""
        return msgspec.json.decode(path.read_bytes(), type=cls)


def digest_of(fields: dict[str, Any]) -> str:
    """Return a digest of an object's content without its revision."""
    metadata = {name: value for name, value in fields["metadata"].items() if name != "resourceVersion"}
    content = msgspec.json.encode({**fields, "metadata": metadata}, order="sorted")
    return hashlib.blake2b(content, digest_size=8).hexdigest()

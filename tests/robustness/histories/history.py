"""The history of a run as its clients observed it: requests, times, and responses.

All times are in nanoseconds of one monotonic clock, which is the clock of the runner. A history can be written to a
file and checked again later.
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
"""The prefix of the IDs of the writes at the end of a run."""

BOOKMARK = "BOOKMARK"
ERROR = "ERROR"


class Selection(NamedTuple):
    """The selected objects of a resource: in one namespace (or in all, if it is empty), with one name (or any, if it is
    empty), and with this label.
    """

    namespace: str = ""
    name: str = ""
    operator: str = ""
    """The operator `in` or `notin` for the label `color`; an empty string selects any color."""
    colors: tuple[str, ...] = ()

    def matches(self, namespace: str, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the selection contains an object."""
        if self.namespace not in ("", namespace) or self.name not in ("", name):
            return False
        return not self.operator or (labels.get("color") in self.colors) == (self.operator == "in")

    @property
    def query(self) -> dict[str, str]:
        """The selection as query parameters of a request; the namespace is part of the request's path."""
        query = {"fieldSelector": f"metadata.name={self.name}"} if self.name else {}
        if self.operator:
            query["labelSelector"] = f"color {self.operator} ({','.join(self.colors)})"
        return query


class Item(NamedTuple):
    """An object in a response: its key, its revision, and a digest of its content."""

    namespace: str
    name: str
    revision: int
    digest: str


class Write(msgspec.Struct, kw_only=True):
    """One attempt to change one object; the event of the change contains the `id` of the attempt."""

    id: str
    server: int
    verb: str
    resource: str
    namespace: str
    name: str
    called: int
    expected: int = 0
    """The resourceVersion that the write requires of the object; 0 means any version."""
    returned: int = NEVER
    code: int = 0
    """The status code of the response; 0 means that there was no response, so that the result is unknown."""
    revision: int = 0
    """The revision of the object in the response; 0 if the response contains no object."""
    message: str = ""
    """The error message in the response."""

    @property
    def acknowledged(self) -> bool:
        """Return whether the write was acknowledged."""
        return 200 <= self.code < 300

    @property
    def refused(self) -> bool:
        """Return whether the write was certainly refused."""
        return 400 <= self.code < 500


class Page(msgspec.Struct):
    """One response to a read: a page of a list, or a single object with the object's revision."""

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
    """If the read continues an expired list, the `namespace/name` of the last object that the expired list returned."""
    pages: list[Page] = []
    whole: bool = False
    """Whether there was a response for every page."""

    @property
    def is_newest(self) -> bool:
        """Return whether the read requested the newest state."""
        return not self.version


class Delivery(NamedTuple):
    """One event of a watch; a bookmark has only a revision, and an error has a status code instead of an object."""

    type: str
    revision: int
    namespace: str
    name: str
    digest: str
    at: int
    initial_end: bool = False


class Watch(msgspec.Struct, kw_only=True):
    """One watch stream, from its request to its end."""

    server: int
    resource: str
    selection: Selection
    version: str
    called: int
    initial: bool | None = None
    """The value of `sendInitialEvents` in the request, if given."""
    bookmarks: bool = False
    timeout: int = 0
    """The value of `timeoutSeconds` in the request; 0 if not given."""
    informer: str = ""
    """The informer to which the stream belongs, if it is one of several streams of an informer."""
    listed: list[Item] | None = None
    """For the first stream of an informer: the list before the stream; empty if the stream itself begins with the
    objects.
    """
    slow: bool = False
    """Whether the client stopped reading for a while, so that the server may have disconnected it."""
    code: int = 0
    deliveries: list[Delivery] = []
    ended: str = ""
    """How the stream ended: `clean` (with the last chunk), `cut` (without the last chunk), or
    `left` (by the client).
    """
    ended_at: int = NEVER


class Compaction(msgspec.Struct):
    """One compaction of the log, with its revision."""

    before: int
    called: int
    returned: int


class Fault(msgspec.Struct):
    """A fault of a server (-1 stands for the database), with the period in which the fault may have had effects."""

    kind: str
    server: int
    began: int
    ended: int


class Logged(msgspec.Struct, frozen=True):
    """One event of the event log."""

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
    """The ID of the write that caused the event; empty if no writer of the run caused it."""


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
    """Unexpected errors that occur in the servers' logs."""

    def save(self, path: Path) -> None:
        """Write the history to a file."""
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def load(cls, path: Path) -> History:
        """Read a history from a file."""
        return msgspec.json.decode(path.read_bytes(), type=cls)


def digest_of(fields: dict[str, Any]) -> str:
    """Return a digest of an object's content, without the object's resourceVersion."""
    metadata = {name: value for name, value in fields["metadata"].items() if name != "resourceVersion"}
    content = msgspec.json.encode({**fields, "metadata": metadata}, order="sorted")
    return hashlib.blake2b(content, digest_size=8).hexdigest()

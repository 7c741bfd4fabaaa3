"""The anchor: a small file outside the database that remembers how far the log had come, and its hash there.

A database alone cannot show that its newest writes are gone: a truncated SQLite WAL or a restored backup is a
perfectly consistent, shorter log, and going on from it would issue revisions twice. With the anchor beside it
both are noticed when the log is opened, before anything is served.

It is written at most once a second and when the log closes, so it may trail the log but never leads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogCorrupt, LogRolledBack
from ctrlmgr.eventlog.event import Head

_INTERVAL = 1.0


class _Content(msgspec.Struct):
    uuid: str
    revision: Revision
    hash: str


class Anchor:
    """The anchor of one log; not shared between threads (the committer's writes it)."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Use the file at `path`, which need not exist yet."""
        self._path = path
        self._clock = clock
        self._uuid = ""
        self._written_at = float("-inf")

    def read(self) -> Head | None:
        """Return what the anchor remembers, None when there is none yet; raises `LogCorrupt` if it is no anchor."""
        try:
            content = msgspec.json.decode(self._path.read_bytes(), type=_Content)
            return Head(content.uuid, content.revision, bytes.fromhex(content.hash))
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, ValueError) as error:
            raise LogCorrupt(f"{self._path} is not an anchor: {error}; move it away to go on without it") from error

    def check(self, read_head: Callable[[], Head], hash_at: Callable[[Revision], bytes | None]) -> Head:
        """Compare the log with what the anchor remembers; returns the log's head.

        Raises `LogRolledBack` when the log ends earlier or is another log, `LogCorrupt` when its history differs.
        An event that compaction has removed since cannot differ.
        """
        anchored = self.read()  # before the log, which another process may be moving on together with its anchor
        head = read_head()
        self._uuid = head.uuid
        if anchored is None:
            return head
        if anchored.uuid != head.uuid:
            raise LogRolledBack(
                f"the database holds log {head.uuid} but {self._path} remembers {anchored.uuid}: was another database "
                "put in its place? Move the anchor away to accept this one"
            )
        if anchored.revision > head.revision:
            raise LogRolledBack(
                f"the database ends at revision {head.revision} but {self._path} remembers {anchored.revision}: it was "
                "restored from an older copy or has lost its newest writes. `ctrlmgr restore` accepts it as a new "
                "incarnation"
            )
        stored = hash_at(anchored.revision)
        if stored is not None and stored != anchored.hash:
            raise LogCorrupt(
                f"revision {anchored.revision} is not what {self._path} remembers", revision=anchored.revision
            )
        return head

    def remember(self, revision: Revision, chain_hash: bytes) -> None:
        """Move the anchor to a new head, unless it was moved less than a second ago."""
        now = self._clock.monotonic()
        if now - self._written_at >= _INTERVAL:
            self._written_at = now
            self.write(Head(self._uuid, revision, chain_hash))

    def write(self, head: Head) -> None:
        """Put the anchor at `head`, atomically and durably."""
        self._uuid = head.uuid
        content = msgspec.json.encode(_Content(head.uuid, head.revision, head.hash.hex()))
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with temporary.open("wb") as file:
            file.write(content + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)

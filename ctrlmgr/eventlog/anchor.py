"""The anchor: a small file outside the database that remembers how far the log had come, and its hash there.

A database alone cannot show that its newest writes are gone: a truncated SQLite WAL or a restored backup is a
perfectly consistent, shorter log, and going on from it would issue revisions twice. With the anchor beside it
both are noticed when the log is opened, before anything is served.

Guarantees:
- It is written at most once a second and when the log closes, so it may trail the log but never leads it.
- With a seal it is signed. Who has no seal leaves a signed anchor as it is.
- It is never moved on to a history that is not the one that it knows (`eventlog.sealing` ships copies of it).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogCorrupt, LogRolledBack
from ctrlmgr.eventlog.event import Head
from ctrlmgr.eventlog.sealing import Seal, Sealing, Shipper, is_signed, load_seal

log = structlog.get_logger(__name__)

_INTERVAL = 1.0


class Content(msgspec.Struct, omit_defaults=True):
    """What an anchor says: where a log was (`hash` is hexadecimal) at a time (µs since 1970), and who signed that."""

    uuid: str
    revision: Revision
    hash: str
    at: int = 0
    key: str = ""
    """The public key, hexadecimal; empty if it is not signed."""
    signature: str = ""

    @property
    def head(self) -> Head:
        """Where the log was."""
        return Head(self.uuid, self.revision, bytes.fromhex(self.hash))

    @property
    def signed(self) -> bytes:
        """What the signature is of."""
        return b"ctrlmgr anchor\n" + msgspec.json.encode(msgspec.structs.replace(self, signature=""))

    def is_signed_by(self, public: str) -> bool:
        """Say whether it is signed with the private half of a key (hexadecimal)."""
        return self.key == public and is_signed(self.signed, self.signature, public)


def parse(line: bytes, source: Path) -> Content:
    """Read one anchor; raises `LogCorrupt` if it is none."""
    try:
        content = msgspec.json.decode(line, type=Content)
        bytes.fromhex(content.hash)
    except (msgspec.MsgspecError, ValueError) as error:
        raise LogCorrupt(f"{source} is not an anchor: {error}; move it away to go on without it") from error
    return content


def check(anchored: Head, head: Head, hash_at: Callable[[Revision], bytes | None], source: str) -> None:
    """Compare a log, which ends at `head`, with what an anchor remembers of it; `source` is what that is called.

    Raises `LogRolledBack` when the log ends earlier or is another log, `LogCorrupt` when its history differs.
    An event that compaction has removed since cannot differ.
    """
    if anchored.uuid != head.uuid:
        raise LogRolledBack(
            f"the database holds log {head.uuid} but {source} remembers {anchored.uuid}: was another database "
            "put in its place? Move the anchor away to accept this one"
        )
    if anchored.revision > head.revision:
        raise LogRolledBack(
            f"the database ends at revision {head.revision} but {source} remembers {anchored.revision}: it was "
            "restored from an older copy or has lost its newest writes. `ctrlmgr restore` accepts it as a new "
            "incarnation"
        )
    stored = hash_at(anchored.revision)
    if stored is not None and stored != anchored.hash:
        raise LogCorrupt(f"revision {anchored.revision} is not what {source} remembers", revision=anchored.revision)


class Anchor:
    """The anchor of one log; not shared between threads (the committer's writes it)."""

    def __init__(self, path: Path, clock: Clock, sealing: Sealing | None = None) -> None:
        """Use the file at `path`, which need not exist yet; raises `SettingsError` for a seal that cannot be used."""
        self._path = path
        self._clock = clock
        self._uuid = ""
        self._written_at = float("-inf")
        self._written: Head | None = None  # what it says
        self._known: Head | None = None  # where the log was when this process appended last
        self._seal: Seal | None = load_seal(sealing) if sealing else None
        self._shipper = Shipper(sealing, clock) if sealing and sealing.command else None

    def read(self) -> Head | None:
        """Return what the anchor remembers, None when there is none yet; raises `LogCorrupt` if it is no anchor."""
        content = self._content()
        return content.head if content else None

    def _content(self) -> Content | None:
        try:
            content = parse(self._path.read_bytes(), self._path)
        except FileNotFoundError:
            return None
        if self._seal is None:
            return content
        if not content.signature:
            log.warning("the anchor is not signed, although there is a key for it", anchor=str(self._path))
        elif not content.is_signed_by(self._seal.public):
            raise LogCorrupt(f"{self._path} is not signed with the key of this log; move it away to go on without it")
        return content

    def check(self, read_head: Callable[[], Head], hash_at: Callable[[Revision], bytes | None]) -> Head:
        """Compare the log with what the anchor remembers (see `check`); returns the log's head."""
        anchored = self.read()  # before the log, which another process may be moving on together with its anchor
        head = read_head()
        self._uuid = head.uuid
        if anchored is not None:
            check(anchored, head, hash_at, str(self._path))
        self._written = self._known = head
        return head

    def remember(self, revision: Revision, chain_hash: bytes, hash_at: Callable[[Revision], bytes | None]) -> None:
        """Move the anchor to a new head, unless it was moved less than a second ago.

        Raises `LogCorrupt` when the log is no longer what it was: the anchor then says where it was when it was right,
        which is seen when the log is opened next.
        """
        head, now = Head(self._uuid, revision, chain_hash), self._clock.monotonic()
        if now - self._written_at >= _INTERVAL:
            self._written_at = now
            self._advance(head, hash_at)
        self._known = head

    def finish(self, head: Head, hash_at: Callable[[Revision], bytes | None]) -> None:
        """Move the anchor to the last head, ship it, and end; raises `LogCorrupt` as `remember` does."""
        try:
            self._advance(head, hash_at)
        finally:
            if self._shipper is not None:
                self._shipper.close()

    def _advance(self, head: Head, hash_at: Callable[[Revision], bytes | None]) -> None:
        for known in dict.fromkeys((self._written, self._known)):
            if known is None or not known.revision or known.uuid != head.uuid:
                continue
            stored = hash_at(known.revision)
            if stored is not None and stored != known.hash:
                if self._known is not None:
                    self.write(self._known)
                text = f"revision {known.revision} is not what this process remembers: the log was rewritten"
                raise LogCorrupt(text, revision=known.revision)
        self.write(head)

    def write(self, head: Head) -> None:
        """Put the anchor at `head`, atomically and durably, unless it is signed and we cannot."""
        self._uuid, self._written, self._known = head.uuid, head, head
        if self._seal is None and self._is_signed():
            return
        content = Content(head.uuid, head.revision, head.hash.hex(), self._clock.now())
        if self._seal is not None:
            content.key = self._seal.public
            content.signature = self._seal.sign(content.signed)
        line = msgspec.json.encode(content) + b"\n"
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with temporary.open("wb") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        if self._shipper is not None:
            self._shipper.ship(line)

    def _is_signed(self) -> bool:
        try:
            return bool(parse(self._path.read_bytes(), self._path).signature)
        except (FileNotFoundError, LogCorrupt):
            return False

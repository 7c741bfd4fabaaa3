"""The anchor: a small file outside the database that stores the log's last known revision and its hash.

A database alone cannot show that its newest writes are lost. If the WAL of a SQLite database was truncated, or a backup
was restored, the log is consistent but shorter, and new appends would reuse revisions. When a log is opened, it
compares itself with the anchor, and so detects both cases before the server handles any request.

Guarantees:
- The anchor is written at most once a second and when the log closes. The anchor may be older than the log's head, but
  it is never newer.
- A process that has a seal signs the anchor. A process without a seal does not overwrite a signed anchor.
- If the log's history contradicts the anchor, the anchor is not changed.

`eventlog.anchor_signing` sends copies of the anchor to another place.
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
from ctrlmgr.eventlog.anchor_signing import Seal, Sealing, Shipper, is_signed, load_seal
from ctrlmgr.eventlog.event import Head

log = structlog.get_logger(__name__)

_INTERVAL = 1.0


class Content(msgspec.Struct, omit_defaults=True):
    """The content of an anchor: a revision of the log and its hash, with the anchor's time and signature.

    The anchor's `hash` is hexadecimal; its `time` is in microseconds since 1970.
    """

    uuid: str
    revision: Revision
    hash: str
    at: int = 0
    key: str = ""
    """The public key of the signature, in hexadecimal; empty if the anchor is not signed."""
    signature: str = ""

    @property
    def head(self) -> Head:
        """The head of the log when the anchor was written."""
        return Head(self.uuid, self.revision, bytes.fromhex(self.hash))

    @property
    def signed(self) -> bytes:
        """The bytes that the signature covers."""
        return b"ctrlmgr anchor\n" + msgspec.json.encode(msgspec.structs.replace(self, signature=""))

    def is_signed_by(self, public: str) -> bool:
        """Return whether the anchor has a valid signature of the key whose public part is `public` (hexadecimal)."""
        return self.key == public and is_signed(self.signed, self.signature, public)


def parse(line: bytes, source: Path) -> Content:
    """Decode the line of an anchor file; raises `LogCorrupt` if the line is not an anchor."""
    try:
        content = msgspec.json.decode(line, type=Content)
        bytes.fromhex(content.hash)
    except (msgspec.MsgspecError, ValueError) as error:
        raise LogCorrupt(f"{source} is not an anchor: {error}; move it away to continue without it") from error
    return content


def check(anchored: Head, head: Head, hash_at: Callable[[Revision], bytes | None], source: str) -> None:
    """Compare a log that ends at `head` with an anchor; `source` names the anchor in error messages.

    Raises `LogRolledBack` if the log ends before the anchor's revision or has another UUID. Raises `LogCorrupt` if the
    log has another hash at the anchor's revision. If compaction has removed the event at the anchor's revision, the
    hashes cannot be compared, and the log is accepted.
    """
    if anchored.uuid != head.uuid:
        raise LogRolledBack(
            f"the database holds log {head.uuid} but {source} names {anchored.uuid}: was another database "
            "put in its place? Move the anchor away to accept this database"
        )
    if anchored.revision > head.revision:
        raise LogRolledBack(
            f"the database ends at revision {head.revision} but {source} names revision {anchored.revision}: it was "
            "restored from an older copy or has lost its newest writes. `ctrlmgr restore` accepts it as a new "
            "incarnation"
        )
    stored = hash_at(anchored.revision)
    if stored is not None and stored != anchored.hash:
        raise LogCorrupt(f"revision {anchored.revision} does not have the hash in {source}", revision=anchored.revision)


class Anchor:
    """The anchor file of one log. Only the committer's thread may use the anchor."""

    def __init__(self, path: Path, clock: Clock, sealing: Sealing | None = None) -> None:
        """Create an anchor for the file at `path`, which need not exist yet.

        Raises `SettingsError` if the seal is unusable.
        """
        self._path = path
        self._clock = clock
        self._uuid = ""
        self._written_at = float("-inf")
        self._written: Head | None = None  # the head that the file contains
        self._known: Head | None = None  # the log's head after this process's last append
        self._seal: Seal | None = load_seal(sealing) if sealing else None
        self._shipper = Shipper(sealing, clock) if sealing and sealing.command else None

    def read(self) -> Head | None:
        """Return the head in the anchor; None if there is no file; raises `LogCorrupt` if the file is not an anchor."""
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
            log.warning("anchor is unsigned, but a key is configured", anchor=str(self._path))
        elif not content.is_signed_by(self._seal.public):
            raise LogCorrupt(
                f"{self._path} is not signed with the key of this log; move it away to continue without it"
            )
        return content

    def check(self, read_head: Callable[[], Head], hash_at: Callable[[Revision], bytes | None]) -> Head:
        """Compare the log with the anchor file (see `check`) and return the log's head."""
        anchored = self.read()  # read before the log's head, because another process may be moving both forward
        head = read_head()
        self._uuid = head.uuid
        if anchored is not None:
            check(anchored, head, hash_at, str(self._path))
        self._written = self._known = head
        return head

    def remember(self, revision: Revision, chain_hash: bytes, hash_at: Callable[[Revision], bytes | None]) -> None:
        """Write a new head to the anchor, unless the anchor was written less than a second ago.

        Raises `LogCorrupt` if the log's history was rewritten. If the history was rewritten, the anchor keeps the last
        correct head, so the next process that opens the log also detects the rewritten history.
        """
        head, now = Head(self._uuid, revision, chain_hash), self._clock.monotonic()
        if now - self._written_at >= _INTERVAL:
            self._written_at = now
            self._advance(head, hash_at)
        self._known = head

    def finish(self, head: Head, hash_at: Callable[[Revision], bytes | None]) -> None:
        """Write the last head to the anchor, ship the anchor, and close the file.

        Raises `LogCorrupt` if the log's history was rewritten.
        """
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
                text = f"revision {known.revision} differs from this process's copy: the log was rewritten"
                raise LogCorrupt(text, revision=known.revision)
        self.write(head)

    def write(self, head: Head) -> None:
        """Write `head` to the anchor, atomically and durably.

        If the process has no seal, a signed anchor is left unchanged.
        """
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

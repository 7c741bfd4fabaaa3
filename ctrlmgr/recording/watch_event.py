"""One line of a watch, as an API server streams it and a recording stores it.

    {"type":"ADDED|MODIFIED|DELETED|BOOKMARK|ERROR","object":{…}}

This module only decodes the line. The readers validate it: a recording is refused (`recording.format`), a server is
asked again (`recording.capture.streams`).
"""

from __future__ import annotations

from typing import cast

import msgspec

from ctrlmgr.eventlog.event import EventType


class Reconciled(msgspec.Struct, rename="camel"):
    """The reconcile that made a change, as far as our log contains it."""

    started_at: str = ""
    triggers: list[int] = []


class Line(msgspec.Struct, rename="camel", gc=False):
    """A watch event with its raw object; only recordings have a time, and only those of our log an author."""

    type: str
    object: msgspec.Raw
    recorded_at: str = ""
    actor: str = ""
    reconcile: Reconciled | None = None


class BookmarkMeta(msgspec.Struct, rename="camel"):
    """The metadata of a bookmark; a server's has no name."""

    resource_version: str
    name: str = ""


class Bookmark(msgspec.Struct):
    """The object of a BOOKMARK: of the watched kind, or a recording's own `Checkpoint`."""

    kind: str
    metadata: BookmarkMeta


decode_line = msgspec.json.Decoder(Line).decode
"""Decode a line; raises msgspec's errors, RecursionError and UnicodeDecodeError."""

_BEGIN, _OBJECT, _TIME, _END = b'{"type":"', b'","object":', b',"recordedAt":"', b'"}'
_LENGTH = len("2026-01-02T03:04:05.123456Z")
_TAIL = len(_TIME) + _LENGTH + len(_END)
_LONGEST_TYPE = len("BOOKMARK")


def plain_line(data: bytes) -> Line | None:
    """Split a line in the usual format of recordings, without decoding its object; return None for any other line.

    The object may be invalid JSON. The caller that decodes it then calls `decode_line` for the error.
    """
    if data[-_TAIL : -_LENGTH - len(_END)] != _TIME or data[-3:] != b'Z"}' or data[: len(_BEGIN)] != _BEGIN:
        return None
    at = data.find(_OBJECT, len(_BEGIN), len(_BEGIN) + _LONGEST_TYPE + len(_OBJECT))
    time = data[-_LENGTH - len(_END) : -len(_END)]
    type_ = data[len(_BEGIN) : at]
    if at < 0 or not type_.isalpha() or b'"' in time or b"\\" in time or not data.isascii():
        return None
    obj = cast(msgspec.Raw, data[at + len(_OBJECT) : -_TAIL])  # a real Raw would be copied once more by each reader
    return Line(type_.decode(), obj, time.decode())


decode_bookmark = msgspec.json.Decoder(Bookmark).decode
"""Decode the object of a BOOKMARK; raises msgspec.MsgspecError."""

CHANGES = {each.name: each for each in EventType}
"""The types of lines that change an object."""

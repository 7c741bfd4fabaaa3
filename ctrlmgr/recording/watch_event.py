"""Decodes a line of a watch response, which an API server streams and a recording stores.

    {"type":"ADDED|MODIFIED|DELETED|BOOKMARK|ERROR","object":{…}}

This module only decodes one line of a recording. The callers validate the decoded event. If a line is invalid,
`recording.format` refuses the recording, and `recording.capture.streams` repeats the watch.
"""

from __future__ import annotations

from typing import cast

import msgspec

from ctrlmgr.eventlog.event import EventType


class Reconciled(msgspec.Struct, rename="camel"):
    """The reconcile that made a change, with the fields that the log of ctrlmgr contains."""

    started_at: str = ""
    triggers: list[int] = []


class Line(msgspec.Struct, rename="camel", gc=False):
    """A watch event with its object as raw JSON.

    Only recordings contain a time, and only recordings of a log of ctrlmgr contain an author.
    """

    type: str
    object: msgspec.Raw
    recorded_at: str = ""
    actor: str = ""
    reconcile: Reconciled | None = None


class BookmarkMeta(msgspec.Struct, rename="camel"):
    """The metadata of a bookmark; a bookmark from a server has no name."""

    resource_version: str
    name: str = ""


class Bookmark(msgspec.Struct):
    """The object of a BOOKMARK event: an object of the watched kind, or a `Checkpoint` of a recording."""

    kind: str
    metadata: BookmarkMeta


decode_line = msgspec.json.Decoder(Line).decode
"""Decode a line; raises the errors of msgspec, RecursionError or UnicodeDecodeError if the line is invalid."""

_BEGIN, _OBJECT, _TIME, _END = b'{"type":"', b'","object":', b',"recordedAt":"', b'"}'
_LENGTH = len("2026-01-02T03:04:05.123456Z")
_TAIL = len(_TIME) + _LENGTH + len(_END)
_LONGEST_TYPE = len("BOOKMARK")


def plain_line(data: bytes) -> Line | None:
    """Split a line in the usual format of recordings, without decoding its object; return None for any other line.

    The object in the result may be invalid JSON. If decoding the object fails, the caller calls `decode_line` for the
    error.
    """
    if data[-_TAIL : -_LENGTH - len(_END)] != _TIME or data[-3:] != b'Z"}' or data[: len(_BEGIN)] != _BEGIN:
        return None
    at = data.find(_OBJECT, len(_BEGIN), len(_BEGIN) + _LONGEST_TYPE + len(_OBJECT))
    time = data[-_LENGTH - len(_END) : -len(_END)]
    type_ = data[len(_BEGIN) : at]
    if at < 0 or not type_.isalpha() or b'"' in time or b"\\" in time or not data.isascii():
        return None
    obj = cast(msgspec.Raw, data[at + len(_OBJECT) : -_TAIL])  # each reader would copy a real Raw once more
    return Line(type_.decode(), obj, time.decode())


decode_bookmark = msgspec.json.Decoder(Bookmark).decode
"""Decode the object of a BOOKMARK event; raises msgspec.MsgspecError if it is invalid."""

CHANGES = {each.name: each for each in EventType}
"""The event types of lines that describe a change of an object."""

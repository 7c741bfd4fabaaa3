"""One line of a watch, as an API server streams it and as a recording keeps it.

    {"type":"ADDED|MODIFIED|DELETED|BOOKMARK|ERROR","object":{…}}

What the line says is decoded here, once; whether it may stand where it stands is for those who read it: a recording
is refused (`recording.format`), a server is asked again (`recording.capture.streams`).
"""

from __future__ import annotations

import msgspec

from ctrlmgr.eventlog.event import EventType


class Reconciled(msgspec.Struct, rename="camel"):
    """The reconcile that made a change, as far as our log says."""

    started_at: str = ""
    triggers: list[int] = []


class Line(msgspec.Struct, rename="camel", gc=False):
    """A watch event with its object as it came; only recordings give a time, and only those of our log an author."""

    type: str
    object: msgspec.Raw
    recorded_at: str = ""
    actor: str = ""
    reconcile: Reconciled | None = None


class BookmarkMeta(msgspec.Struct, rename="camel"):
    """The metadata of a bookmark; servers give it no name."""

    resource_version: str
    name: str = ""


class Bookmark(msgspec.Struct):
    """The object of a BOOKMARK: one of the kind that is watched, or a recording's own `Checkpoint`."""

    kind: str
    metadata: BookmarkMeta


decode_line = msgspec.json.Decoder(Line).decode
"""Decode a line; raises what msgspec raises, and RecursionError or UnicodeDecodeError."""

decode_bookmark = msgspec.json.Decoder(Bookmark).decode
"""Decode the object of a BOOKMARK; raises msgspec.MsgspecError."""

CHANGES = {each.name: each for each in EventType}
"""The types of lines that change an object."""

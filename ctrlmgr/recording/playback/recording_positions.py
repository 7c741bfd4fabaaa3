"""Parses the positions in a recording to which users seek."""

from __future__ import annotations

from ctrlmgr.clock import parse_time
from ctrlmgr.errors import BadRequest
from ctrlmgr.recording.playback.player import Player
from ctrlmgr.recording.playback.timetable import SECOND
from ctrlmgr.settings import parse_duration

START, END = "start", "end"


def seek(player: Player, text: str, now: float) -> None:
    """Seek to `start`, `end`, a revision or a time (RFC 3339), or by a duration (`+30s`, `-1m30s`).

    Raises `BadRequest` for another text, and for a revision outside the recording; a time outside the recording means
    its beginning or end.
    """
    timetable = player.timetable
    first, last = timetable.revisions[timetable.opening - 1], timetable.revisions[-1]
    if text in (START, END):
        player.seek_revision(first if text == START else last, now)
    elif text.isascii() and text.isdecimal():
        revision = int(text)
        if not first <= revision <= last:
            raise BadRequest(f"revision {revision} is not in the recording: its revisions are {first} to {last}")
        player.seek_revision(revision, now)
    else:
        player.advance(now)
        player.seek_time(_moment(text, player.time), now)


def _moment(text: str, now: int) -> int:
    sign = {"+": 1, "-": -1}.get(text[:1])
    try:
        return now + sign * round(parse_duration(text[1:]) * SECOND) if sign else parse_time(text)
    except ValueError:
        raise BadRequest(
            f"{text!r} is not a position in a recording; write start, end, a revision, a time such as "
            "2026-01-02T03:04:05Z, "
            "or +30s for thirty seconds later"
        ) from None

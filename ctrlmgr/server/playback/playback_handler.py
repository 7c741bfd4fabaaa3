"""Serves the playback controls of a recording at `/play`, for administrators.

| request | effect |
|---|---|
| `GET /play` | returns the current position |
| `POST /play/pause`, `POST /play/resume` | pauses, resumes |
| `POST /play/step?events=N` | moves forward by N events (1 by default; backward if N is negative), and pauses |
| `POST /play/seek?to=PLACE` | seeks a revision, a time, `start`, `end`, or an offset: `+30s`, `-1m` |
| `POST /play/speed?times=X` | plays at X times the recorded speed |
| `GET /play/writes?after=N&limit=N` | returns the pretended writes after number N |

Guarantees: every command returns the new position, in the form of `GET /play`. Later API requests read the objects at
this position.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import msgspec

from ctrlmgr.errors import BadRequest, MethodNotAllowed, StatusDetails
from ctrlmgr.recording.playback.playback_control import Playback, State
from ctrlmgr.recording.playback.pretended_writes import PretendedWrite, PretendedWrites
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.server.presenting.responses import Response
from ctrlmgr.server.request import Request

PATH = "/play"
PAGE = 500
"""Maximum number of writes in one response."""

_INTEGER = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_encode = msgspec.json.Encoder().encode


class ReportedWrites(msgspec.Struct, frozen=True, rename="camel"):
    """A page of the pretended writes."""

    count: int
    """The number of all pretended writes, including the writes that the server has already discarded."""
    writes: list[PretendedWrite]


def play_pages(playback: Playback, pretending: PretendedWrites | None) -> dict[str, Page]:
    """Return the pages by URL path; if `pretending` is None, `/play/writes` returns no writes."""

    async def show(request: Request) -> Response:
        _only(request, "GET", "HEAD")
        return Response(200, _encode(playback.state()))

    async def writes(request: Request) -> Response:
        _only(request, "GET", "HEAD")
        if pretending is None:
            return Response(200, _encode(ReportedWrites(0, [])))
        after, limit = _integer(request, "after", 0), _integer(request, "limit", PAGE)
        return Response(
            200, _encode(ReportedWrites(pretending.count, pretending.after(after, min(max(limit, 1), PAGE))))
        )

    return {
        PATH: show,
        f"{PATH}/writes": writes,
        f"{PATH}/pause": _command(lambda request: playback.pause()),
        f"{PATH}/resume": _command(lambda request: playback.resume()),
        f"{PATH}/step": _command(lambda request: playback.step(_integer(request, "events", 1))),
        f"{PATH}/seek": _command(lambda request: playback.seek(_required(request, "to"))),
        f"{PATH}/speed": _command(lambda request: playback.set_speed(_number(request, "times"))),
    }


def _command(act: Callable[[Request], State]) -> Page:
    async def page(request: Request) -> Response:
        _only(request, "POST")
        return Response(200, _encode(act(request)))

    return page


def _only(request: Request, *methods: str) -> None:
    if request.method not in methods:
        raise MethodNotAllowed(details=StatusDetails())


def _required(request: Request, name: str) -> str:
    value = request.query.get(name, [""])[0]
    if not value:
        raise BadRequest(f"the parameter {name!r} is missing")
    return value


def _integer(request: Request, name: str, default: int) -> int:
    value = request.query.get(name, [str(default)])[0]
    if not _INTEGER.fullmatch(value):
        raise BadRequest(f"{name} is {value!r}; it must be a whole number")
    return int(value)


def _number(request: Request, name: str) -> float:
    value = _required(request, name)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadRequest(f"{name} is {value!r}; it must be a number")
    return number

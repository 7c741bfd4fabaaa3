"""Serves diagnostics of this process for administrators: `/configz`, `/debug/profile`, `/debug/threads`.

| path | answer |
|---|---|
| `/configz` | the settings in force, passwords masked |
| `/debug/threads` | the stack of every thread |
| `/debug/profile?seconds=N` | samples of N seconds (5 by default) as collapsed stacks |

Each line of a profile consists of a stack, with frames separated by `;`, and the number of samples with this stack.
Flame graph tools read such profiles. The profiler runs on a worker thread.
"""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Mapping
from types import FrameType
from typing import Any

import msgspec

from ctrlmgr.clock import Clock
from ctrlmgr.errors import BadRequest, MethodNotAllowed, StatusDetails
from ctrlmgr.interpreter import frames
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.server.presenting.responses import Response, text
from ctrlmgr.server.request import Request
from ctrlmgr.server.workers import Workers

_PERIOD = 0.01
"""The number of seconds between two samples of the profiler."""

_LONGEST = 60.0
_DIGITS = 20
_DEFAULT = "5"


def debug_pages(
    settings: Mapping[str, Any], workers: Workers, *, clock: Clock, profiling: bool = True
) -> dict[str, Page]:
    """Return the pages by URL path; `settings` is the content of `/configz`.

    Pages below /debug exist only if `profiling` is set.
    """
    configz = msgspec.json.encode({"ctrlmgr": settings})

    async def show_settings(request: Request) -> Response:
        _only_get(request)
        return Response(200, configz)

    async def show_threads(request: Request) -> Response:
        _only_get(request)
        return text(200, _threads())

    async def show_profile(request: Request) -> Response:
        _only_get(request)
        seconds = _seconds(request)
        return text(200, await workers.run(lambda: profile(seconds, clock)))

    debugging: dict[str, Page] = {"/debug/threads": show_threads, "/debug/profile": show_profile}
    return {"/configz": show_settings, **(debugging if profiling else {})}


def profile(seconds: float, clock: Clock) -> str:
    """Sample all other threads for `seconds`; return collapsed stacks, the most frequent first."""
    own = threading.get_ident()
    stacks: Counter[str] = Counter()
    pause = threading.Condition()
    ends_at = clock.monotonic() + seconds
    with pause:
        while clock.monotonic() < ends_at:
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            for ident, frame in frames().items():
                if ident != own:
                    stacks[f"{names.get(ident, ident)};{_collapsed(frame)}"] += 1
            clock.wait(pause, _PERIOD)
    return "".join(f"{stack} {count}\n" for stack, count in stacks.most_common())


def _collapsed(frame: FrameType | None) -> str:
    places = []
    while frame is not None:
        code = frame.f_code
        places.append(f"{code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    return ";".join(reversed(places))


def _threads() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in frames().items():
        parts.append(f"{names.get(ident, ident)}\n{''.join(traceback.format_stack(frame))}")
    return "\n".join(parts)


def _seconds(request: Request) -> float:
    value = request.query.get("seconds", [_DEFAULT])[0]
    if len(value) > _DIGITS or not value.isdecimal() or not 0 < int(value) <= _LONGEST:
        raise BadRequest(f"seconds is {value[:_DIGITS]!r}; it must be a whole number from 1 to {_LONGEST:g}")
    return float(value)


def _only_get(request: Request) -> None:
    if request.method not in ("GET", "HEAD"):
        raise MethodNotAllowed(details=StatusDetails())

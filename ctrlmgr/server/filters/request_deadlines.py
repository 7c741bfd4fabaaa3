"""Limits the duration of requests, and answers a request that takes too long with 504.

Guarantees:
- A request may take as long as its query parameter `timeout` allows, but not longer than the server's limit. The
  duration of watches, proxied requests, logs, connections to containers and profiles is not limited.
- If the response has not begun at the deadline, the client receives 504; otherwise the connection is aborted, so that
  the client detects an error. The handler of the request continues, but the server drops the handler's later output.
- The server starts no timer for a request that never waits.

Source: apiserver `pkg/endpoints/filters/request_deadline.go`, `pkg/server/filters/timeout.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any, Final

from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.errors import BadRequest
from ctrlmgr.golang.go_duration import MalformedDuration, parse_go_duration
from ctrlmgr.http.eager_coroutines import resumed
from ctrlmgr.server.filters.in_flight_limits import LONG_RUNNING
from ctrlmgr.server.request import Request

REQUEST_TIMEOUT: Final = 60.0
"""The default of the setting `server.request_timeout`, in seconds."""

_UNLIMITED_PATHS: Final = ("/debug/", "/ui/")
"""The beginnings of paths whose pages may take any time: profiles, and the event streams of the web page."""

_NANOSECONDS: Final = 1_000_000_000


class RequestDeadlines:
    """Determines the maximum duration of each request."""

    def __init__(self, longest: float = REQUEST_TIMEOUT) -> None:
        """Create an instance that lets a request take at most `longest` seconds."""
        self.longest = longest

    def seconds(self, request: Request, attributes: Attributes) -> float | None:
        """Return the maximum duration of a request in seconds; None if the request is long-running.

        Raises `BadRequest` if the query parameter `timeout` of the request is malformed.
        """
        if _is_long_running(attributes):
            return None
        given = request.query.get("timeout")
        if not given or not given[0]:
            return self.longest
        try:
            requested = parse_go_duration(given[0]) / _NANOSECONDS
        except MalformedDuration as error:
            raise BadRequest(f"invalid timeout specified in the request URL - {error}") from error
        return requested if 0 < requested < self.longest else self.longest


def _is_long_running(attributes: Attributes) -> bool:
    if not attributes.is_resource:
        return attributes.path.startswith(_UNLIMITED_PATHS)
    return attributes.verb in ("watch", "proxy") or attributes.subresource in LONG_RUNNING


async def answer_in_time(work: Coroutine[Any, Any, None], seconds: float, request: Request) -> None:
    """Await `work`, which answers `request`. If `work` takes longer than `seconds`, answer the request with 504.

    Raises the errors of `work`.
    """
    await _timed(work, partial(_call_later, seconds, request.time_out))


def _call_later(seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(seconds, call)


@coroutine
def _timed(
    work: Coroutine[Any, Any, None], start_timer: Callable[[], asyncio.TimerHandle]
) -> Generator[Any, Any, None]:
    """Run `work`. Start a timer when `work` first waits, and cancel the timer when `work` ends."""
    try:
        waits_for = work.send(None)
    except StopIteration:
        return
    timer = start_timer()
    try:
        yield from resumed(work, waits_for)
    finally:
        timer.cancel()

"""One HTTP connection: uvicorn's, with the bounds it leaves to a proxy and the client certificate it does not pass on.

Guarantees:
- A client that has not sent its whole head `HEAD_TIMEOUT` seconds after it connected, or after it began a request,
  is disconnected (net/http's ReadHeaderTimeout in kube-apiserver). So is one that sends anything else for as long
  between two requests: blank lines, or the rest of a body whose request has been answered.
- A head of more than `HEAD_LIMIT` bytes is answered 431, one that can be read in two ways 400, as by net/http;
  the application never hears of either. What was asked before is answered first; then the connection closes, and
  nothing that came after such a head is ever taken for a request.
- A body that was not asked for (`Expect: 100-continue`, and the answer came instead) is not waited for: the connection
  closes, since nobody can tell whether what comes next is that body or a request.
- An upgrade is never made: its request is answered like any, and the connection closes.
- A server that stops tells each client with its next answer that the connection closes (`leave`), and is not held up by
  clients that are idle, or that have read their answer.
- `scope["client_certificate"]` is the verified certificate of the client as `ssl` decodes it, None without one.
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ctrlmgr.server.http.eager import start
from ctrlmgr.server.http.lazy_timer import LazyTimer

HEAD_TIMEOUT = 32.0
"""Seconds for the head of a request."""

HEAD_LIMIT = 1 << 20
"""Bytes of request line and headers together."""

LINGER = 0.5
"""Seconds that a client has, when its connection is closed by the server, to read the last of its answer."""

_BAD_REQUEST = "400 Bad Request"
_TOO_LARGE = "431 Request Header Fields Too Large"


class Protocol(HttpToolsProtocol):
    """See the module's docstring. One instance a connection, used on the event loop only."""

    def __init__(self, config: uvicorn.Config, *args: Any, **kwargs: Any) -> None:
        """Start with nothing received."""
        super().__init__(config, *args, **kwargs)
        self._certificate: dict[str, Any] | None = None
        self._in_head = True  # whether the head of a request is awaited
        self._in_body = False  # whether the rest of a request is
        self._head_size = 0  # how much of a head that came in pieces has come
        self._has_ended = False  # whether the last piece that came brought the end of a request
        self._last_words = ""  # the status of the last answer there will be: what else comes is not looked at
        self._is_last = False  # whether the next answer is the last one, because the server stops
        self._is_leaving = False  # whether there is none any more, but for those under way
        self._is_receiving = False  # whether the parser is at work
        self._begun: RequestResponseCycle | None = None  # the request that is to be answered once it has done that
        # Ends the wait; a head that comes in one piece, as most do, needs none.
        self._head_timer: asyncio.TimerHandle | None = None
        self._idleness = LazyTimer(self.loop, self.timeout_keep_alive, lambda: self.timeout_keep_alive_handler())

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._certificate = transport.get_extra_info("peercert") or None
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._forget_timer()
        self._idleness.close()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come; a head that is still not over must not grow too large, nor take too long."""
        if not (self._last_words or self.transport.is_closing()):
            self._has_ended, self._is_receiving = False, True
            super().data_received(data)
            self._is_receiving = False
            if self._begun is not None:
                begun, self._begun = self._begun, None
                self._start(begun)
            self._bound(len(data))

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["client_certificate"] = self._certificate  # type: ignore[typeddict-unknown-key]  # ours
        self._in_head = True

    def on_headers_complete(self) -> None:
        """Hand the request to the application."""
        if self._is_too_large():
            raise ValueError(_TOO_LARGE)  # the parser stops, and says so to `send_400_response`
        if not self._is_for_one_host():
            raise ValueError(_BAD_REQUEST)
        self._forget_timer()
        self._idleness.cancel()
        super().on_headers_complete()  # raises for a target that is none: that is still a matter of the head
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False  # the parser reads nothing after it
        if self._is_last:
            self.cycle.keep_alive = False
        self._in_head = False
        self._in_body = True
        self._head_size = 0

    def on_message_complete(self) -> None:
        """End a request; if it was answered before it was over, the next one has all the time that any has."""
        super().on_message_complete()
        self._in_body = False
        self._has_ended = True
        if self._head_timer is not None:
            self._forget_timer()
            self._idleness.start()

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser does not take."""
        self._refuse(_TOO_LARGE if self._in_head and self._is_too_large() else _BAD_REQUEST)

    def on_response_complete(self) -> None:
        """Go on to the next request, unless there must be none."""
        was_last = not self.pipeline
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if was_last:
                self._idleness.start()
            else:
                self._start_asgi_task(*self.pipeline.pop())
        if self._last_words and was_last:
            self._say_last_words()
        elif self._is_leaving:
            self._drop_soon()

    def _unsupported_upgrade_warning(self) -> None:
        """Do not log what any client can ask for as often as it likes; it is answered as if it had not."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if self._last_words and self._in_body and cycle is self.cycle:
            self._say_last_words()  # its body cannot be read
        elif self._is_receiving:
            self._begun = cycle  # there is one at most: what is asked before it is answered queues up
        else:
            super()._start_asgi_task(cycle, app)

    def _start(self, cycle: RequestResponseCycle) -> None:
        """Answer a request; one that is all there, and whose answer is at hand, without a task."""
        if cycle.more_body or cycle.waiting_for_100_continue or self.pipeline:
            super()._start_asgi_task(cycle, self.app)
            return
        task = start(cycle.run_asgi(self.app), self.loop)
        if task is not None:
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)

    def leave(self) -> None:
        """Let the client have one more answer, which says that it is the last: the server stops.

        To close the connection at once would be to lose what the client is just sending: it cannot tell whether that
        was done. Whoever is told with an answer asks the next server.
        """
        self._is_last = True
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False

    def shutdown(self) -> None:
        """Close the connection because the server stops; first answer what is under way."""
        if not self._is_leaving:
            self._is_leaving = True
            super().shutdown()
            self._drop_soon()

    def _bound(self, received: int) -> None:
        """See that what has begun with `received` bytes does not go on for too long."""
        if self._last_words:
            return
        if self._in_head:
            self._head_size += received
            if self._head_size > HEAD_LIMIT:
                self._refuse(_TOO_LARGE)
                return
        elif self._has_ended or not self.cycle.response_complete:
            return  # a request is to be answered: that takes as long as it takes
        if self._head_timer is None:
            self._time_head()

    def _refuse(self, status: str) -> None:
        """Answer what is no request, in its turn, and look at nothing else that comes."""
        self._last_words = status
        self._forget_timer()
        last: RequestResponseCycle | None = self.cycle
        if last is None or last.response_complete or (self._in_body and not self.pipeline):
            self._say_last_words()
        # Else there are requests whose answers come first.

    def _say_last_words(self) -> None:
        status, has_answer = self._last_words, self._in_body and self.cycle.response_started
        if not (has_answer or self.transport.is_closing()):
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
            self.transport.write(f"{head}content-length: {len(status)}\r\n\r\n{status}".encode())
        self.transport.close()
        self._drop_soon()

    def _is_too_large(self) -> bool:
        """Whether a head that came in several pieces is."""
        return self._head_size > 0 and _length(self.url, self.headers) > HEAD_LIMIT

    def _is_for_one_host(self) -> bool:
        """Whether a request says for which host it is, once (RFC 9112, section 3.2)."""
        hosts = [name for name, _ in self.headers].count(b"host")
        return hosts == 1 or (not hosts and self.parser.get_http_version() == "1.0")

    def _drop_soon(self) -> None:
        """See a closing connection closed: TLS would wait half a minute for the client to say goodbye as well.

        A client that is idle, as in every pool of connections, does not read and so does not answer.
        """
        if self.transport.is_closing():
            self.loop.call_later(LINGER, self._drop, self.transport.get_write_buffer_size())

    def _drop(self, unread: int) -> None:
        """Drop a connection, unless its client has been reading since `unread` bytes were left of its answer."""
        left = self.transport.get_write_buffer_size()
        if left < unread:
            self.loop.call_later(LINGER, self._drop, left)
        else:
            self.transport.abort()

    def _time_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT, self.transport.abort)

    def _unset_keepalive_if_required(self) -> None:
        self._idleness.cancel()

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _length(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)

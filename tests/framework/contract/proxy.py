"""A proxy in front of `ctrlmgr serve` that delays and breaks requests, as a real API server may do.

The proxy changes every request and response in these ways:
- The proxy sends no bookmarks except the bookmark that ends a streamed list, and optionally refuses streamed lists.
  Watches are sent without chunks, as by an HTTP/1.0 proxy.
- `Order.EVENT_FIRST`: the response to a write waits until the watches of the written resource have sent the event;
  `Order.ANSWER_FIRST`: the watches wait until the writes in flight have been answered.

A test adds a `Fault` for the first requests that match: another response, no response, or a watch that is cut. The
proxy passes on all other bytes unchanged.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import urllib3

from ctrlmgr.testing.served import ServerProcess

_PATH: Final = re.compile(r"/(api/v1|apis/[^/]+/[^/]+)(?:/namespaces/[^/]+)?/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?")
_PATIENCE: Final = 10.0
"""Seconds that the response to a write waits for the watch event; if the write changed nothing, no event follows."""


class ResponseOrder(Enum):
    """The order in which a client receives the response to a write and the watch event of the write."""

    EVENT_FIRST = 1
    ANSWER_FIRST = 2


class ClientRequest(NamedTuple):
    """A request."""

    method: str
    path: str
    query: Mapping[str, str]

    @property
    def resource(self) -> str:
        """The resource of a request, such as `apps/v1/replicasets`; the string is empty for discovery."""
        found = _PATH.fullmatch(self.path)
        return f"{found[1].partition('/')[2]}/{found[2]}".removeprefix("v1/") if found else ""

    @property
    def name(self) -> str:
        found = _PATH.fullmatch(self.path)
        return (found[3] or "") if found else ""

    @property
    def verb(self) -> str:
        if self.method == "GET":
            return "watch" if "watch" in self.query else "get" if self.name else "list"
        return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[self.method]

    @property
    def streams_list(self) -> bool:
        return "sendInitialEvents" in self.query

    @property
    def is_write(self) -> bool:
        return bool(self.resource) and self.method != "GET"


class Fault(NamedTuple):
    """A fault for the first `times` requests for which `hits` returns true."""

    hits: Callable[[ClientRequest], bool]
    times: int = 1
    code: int = 0
    """The status code of a response that the proxy sends instead of calling the server; 0 means that the proxy calls
    the server.
    """
    reason: str = ""
    headers: Mapping[str, str] = {}
    is_lost: bool = False
    """Whether the server executes the request, and the server's response is lost."""
    lines: int | None = None
    """The number of lines after which a watch is cut; the last event has `code` and `reason`."""

    @property
    def status(self) -> bytes:
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        return json.dumps(
            {**head, "message": f"fault: {self.reason}", "reason": self.reason, "code": self.code}
        ).encode()


class Proxy:
    """A proxy that listens on a free port of 127.0.0.1; it is a context manager."""

    def __init__(
        self, server: ServerProcess, order: ResponseOrder | None = None, *, streams_lists: bool = True
    ) -> None:
        self._order = order
        self._streams_lists = streams_lists
        self._upstream = urllib3.PoolManager(ssl_context=server.trust, maxsize=64, retries=False)
        self._server = server
        self._changed = threading.Condition()
        self._shown: dict[str, int] = defaultdict(int)  # the newest revision that a watch has sent, by resource
        self._watches: Counter[str] = Counter()
        self._in_flight: dict[str, set[int]] = defaultdict(set)
        self._writes = 0
        self._faults: list[list[Any]] = []
        self.answered: list[tuple[ClientRequest, int]] = []
        """Every forwarded request, with the status code of the response."""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._upstream.clear()

    def add(self, *faults: Fault) -> None:
        """Add faults; for each request, the first fault that matches it is injected."""
        with self._changed:
            self._faults += [[each, each.times] for each in faults]

    @property
    def is_through(self) -> bool:
        """Return whether all faults have been injected."""
        with self._changed:
            return not self._faults

    def _fault(self, asked: ClientRequest) -> Fault | None:
        with self._changed:
            for each in self._faults:
                if each[0].hits(asked):
                    each[1] -= 1
                    self._faults = [left for left in self._faults if left[1] > 0]
                    return each[0]  # type: ignore[no-any-return]  # a list of a fault and its number
        return None

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        split = urlsplit(handler.path)
        asked = ClientRequest(
            handler.command, split.path, {name: each[0] for name, each in parse_qs(split.query).items()}
        )
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        fault = self._fault(asked)
        if fault is not None and fault.code and fault.lines is None:
            _send(handler, fault.code, fault.headers, fault.status)
        elif asked.streams_list and not self._streams_lists:
            _send(handler, 500, {}, Fault(lambda _: True, code=500, reason="InternalError").status)
        elif asked.verb == "watch" and asked.resource:
            self._pass_on_watch(handler, asked, fault)
        else:
            self._pass_on(handler, asked, body, fault)

    def _ask(
        self, handler: BaseHTTPRequestHandler, asked: ClientRequest, body: bytes = b""
    ) -> urllib3.BaseHTTPResponse:
        passed = ("accept", "authorization", "content-type", "user-agent")
        headers = {name: value for name, value in handler.headers.items() if name.lower() in passed}
        url = f"{self._server.url}{asked.path}?{urlencode(asked.query)}"
        answer = self._upstream.request(asked.method, url, body=body, headers=headers, preload_content=False)
        self.answered.append((asked, answer.status))
        return answer

    def _pass_on(self, handler: BaseHTTPRequestHandler, asked: ClientRequest, body: bytes, fault: Fault | None) -> None:
        with self._written(asked):
            before = self._shown[asked.resource]
            answer = self._ask(handler, asked, body)
            data = answer.data
            if self._order is ResponseOrder.EVENT_FIRST and asked.is_write and answer.status < 300:
                self._await_event(asked, json.loads(data), before)
            if fault is not None and fault.is_lost:
                handler.close_connection = True
            else:
                _send(handler, answer.status, {"content-type": answer.headers["content-type"]}, data)

    @contextmanager
    def _written(self, asked: ClientRequest) -> Iterator[None]:
        """Count one write as in flight while this block runs."""
        if not asked.is_write:
            yield
            return
        with self._changed:
            self._writes += 1
            number = self._writes
            self._in_flight[asked.resource].add(number)
        try:
            yield
        finally:
            with self._changed:
                self._in_flight[asked.resource].discard(number)
                self._changed.notify_all()

    def _await_event(self, asked: ClientRequest, answer: dict[str, Any], before: int) -> None:
        revision = int((answer.get("metadata") or {}).get("resourceVersion") or before + 1)
        with self._changed:
            self._changed.wait_for(
                lambda: not self._watches[asked.resource] or self._shown[asked.resource] >= revision, _PATIENCE
            )

    def _pass_on_watch(self, handler: BaseHTTPRequestHandler, asked: ClientRequest, fault: Fault | None) -> None:
        answer = self._ask(handler, asked)
        if answer.status != 200:
            _send(handler, answer.status, {}, answer.data)
            return
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.end_headers()  # without a length: the end of the connection ends the body
        handler.close_connection = True
        counts = "fieldSelector" not in asked.query
        self._count_watch(asked, counts)
        try:
            self._pass_on_lines(handler, asked, answer, fault)
        except OSError:
            pass  # the client has disconnected
        finally:
            self._count_watch(asked, -counts)
            answer.close()

    def _count_watch(self, asked: ClientRequest, by: int) -> None:
        with self._changed:
            self._watches[asked.resource] += by
            self._shown[asked.resource] = max(self._shown[asked.resource], int(asked.query.get("resourceVersion", 0)))
            self._changed.notify_all()

    def _pass_on_lines(
        self,
        handler: BaseHTTPRequestHandler,
        asked: ClientRequest,
        answer: urllib3.BaseHTTPResponse,
        fault: Fault | None,
    ) -> None:
        left = fault.lines if fault is not None else None
        for line in _lines(answer):
            if left == 0:
                break
            event = json.loads(line)
            metadata = event["object"].get("metadata") or {}
            if event["type"] == "BOOKMARK" and not metadata.get("annotations"):
                continue
            if self._order is ResponseOrder.ANSWER_FIRST:
                self._await_answers(asked)
            handler.wfile.write(line + b"\n")
            handler.wfile.flush()
            with self._changed:
                self._shown[asked.resource] = max(self._shown[asked.resource], int(metadata["resourceVersion"]))
                self._changed.notify_all()
            left = left - 1 if left is not None else None
        if fault is not None and fault.code:
            handler.wfile.write(b'{"type":"ERROR","object":' + fault.status + b"}\n")

    def _await_answers(self, asked: ClientRequest) -> None:
        with self._changed:
            before = set(self._in_flight[asked.resource])
            self._changed.wait_for(lambda: not before & self._in_flight[asked.resource], _PATIENCE)


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for piece in answer.stream(1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def _send(handler: BaseHTTPRequestHandler, code: int, headers: Mapping[str, str], body: bytes) -> None:
    handler.send_response(code)
    for name, value in {"content-type": "application/json", **headers, "content-length": str(len(body))}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *arguments: object) -> None:
            """Log no requests."""

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", lambda handler: proxy.answer(handler))
    return Handler

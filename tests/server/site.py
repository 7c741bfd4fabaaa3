"""A running server on a log in memory, and a client for the server, which sends real requests over a real socket."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry

from ctrlmgr import threads
from ctrlmgr.api.object import Object
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.clock import Clock, SystemClock
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.eventlog import Author, EventLog, Proposal
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.http.size_limits import DEFAULT, Bounds
from ctrlmgr.informer import EventWindow
from ctrlmgr.server import App, Backend, Health, HttpServer, Pages
from ctrlmgr.server.aggregating.proxy_handler import Aggregator
from ctrlmgr.server.auditing.audit_filter import Auditing
from ctrlmgr.server.authn.access import AllowEverything, Authenticator
from ctrlmgr.server.authn.review_resources import Reviews
from ctrlmgr.server.authn.token_requests import TokenRequests
from ctrlmgr.server.container_connector import Make
from ctrlmgr.server.fairness.fairness_filter import Fairness
from ctrlmgr.server.filters.outer_filters import OuterFilters
from ctrlmgr.server.watch.watching import SHORTEST_WATCH
from ctrlmgr.testing.builders import a_namespace
from tests.engine.stage import builtin_kinds

TIMEOUT = 20.0
"""Timeout for a response that a test expects, in seconds of real time."""

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ApplicationAndLog(NamedTuple):
    """An application of the HTTP server, and the application's log."""

    app: App
    log: EventLog
    backend: Backend
    fairness: Fairness


def make(
    log: EventLog | None = None,
    *,
    health: Sequence[Health] = (),
    registry: CollectorRegistry | None = None,
    access: Any = None,
    clock: Clock | None = None,
    window: int = 10_000,
    seats: int = 600,
    tokens: TokenRequests | None = None,
    auditing: Auditing | None = None,
    ends_watches: bool = True,
    aggregator: Callable[[Cacher], Aggregator] | None = None,
    kubelets: Make | None = None,
    filters: OuterFilters | None = None,
    shortest_watch: float = SHORTEST_WATCH,
    watch_grace: float = 0.0,
    logs_requests: bool = False,
) -> ApplicationAndLog:
    """Create an application on `log`, by default on a new log in memory; `access` is the authenticator and the
    authorizer.
    """
    clock = clock or SystemClock()
    log = log or MemoryEventLog(clock=clock, random=Random(1))
    feed = EventWindow(log, clock=clock)
    access = access or AllowEverything()
    authenticator: Authenticator = access
    authorizer: Authorizer = access
    reviews = Reviews(authenticator, authorizer)
    more: dict[str, Any] = {"window": window, "tokens": tokens, "kubelets": kubelets, "shortest_watch": shortest_watch}
    backend = Backend(log, feed, builtin_kinds(), reviews, clock=clock, random=Random(2), **more)
    kinds = builtin_kinds() if aggregator is None else backend.kinds
    passing_on = aggregator(backend.engine.cacher) if aggregator is not None else None
    pages = Pages(
        health,
        registry or CollectorRegistry(),
        kinds,
        backend.workers,
        remote=passing_on.discovery if passing_on is not None else None,
        schemas=passing_on.openapi if passing_on is not None else None,
        swaggers=passing_on.swaggers.in_order if passing_on is not None else tuple,
    )
    fairness = Fairness(seats, backend.engine.cacher, clock=clock)
    app = App(
        backend,
        pages,
        authenticator,
        authorizer,
        clock=clock,
        random=Random(3),
        limits=fairness,
        auditing=auditing,
        ends_watches=ends_watches,
        aggregator=passing_on,
        filters=filters,
        watch_grace=watch_grace,
        logs_requests=logs_requests,
    )
    return ApplicationAndLog(app, log, backend, fairness)


@contextmanager
def serving(app: App, address: tuple[str, int] = ("127.0.0.1", 0), bounds: Bounds = DEFAULT) -> Iterator[str]:
    """Serve `app` within the block, and then stop the server gracefully."""
    server, stop = HttpServer(app, address, clock=SystemClock(), bounds=bounds), threading.Event()
    thread = threads.start("server under test", lambda: server.run(stop))
    try:
        yield server.url
    finally:
        stop.set()
        thread.join(TIMEOUT)
        assert not thread.is_alive(), "the server did not stop"


def await_refusal(host: str, port: int) -> None:
    """Return as soon as the server refuses new connections."""
    while True:
        try:
            socket.create_connection((host, port), TIMEOUT).close()
        except ConnectionResetError:
            continue  # the connection waited in the accept queue when the server stopped accepting
        except ConnectionRefusedError:
            return


class Site:
    """A running server, and the log of the server."""

    def __init__(self, url: str, log: EventLog) -> None:
        self.url = url
        self.log = log

    def ask(self, path: str, method: str = "GET", body: Any = None, headers: dict[str, str] | None = None) -> Response:
        """Send one request; a body that is not `bytes` is sent as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=TIMEOUT)
        try:
            connection.request(method, path, data, headers or {})
            response = connection.getresponse()
            lowered = {name.lower(): value for name, value in response.getheaders()}
            return Response(response.status, lowered, response.read().decode(errors="replace"))
        finally:
            connection.close()

    def create(self, name: str, **data: str) -> Any:
        """Create a ConfigMap in `default` and return the created ConfigMap."""
        answer = self.ask(CONFIG_MAPS, "POST", {"metadata": {"name": name}, "data": data})
        assert answer.status == 201, answer.body
        return answer.json

    def change(self, name: str, **data: str) -> Any:
        """Merge `data` into a ConfigMap and return the changed ConfigMap."""
        headers = {"Content-Type": "application/merge-patch+json"}
        answer = self.ask(f"{CONFIG_MAPS}/{name}", "PATCH", {"data": data}, headers)
        assert answer.status == 200, answer.body
        return answer.json

    def connect(self) -> socket.socket:
        """Open a connection on which a test sends requests byte by byte."""
        connection = socket.create_connection(
            (urlsplit(self.url).hostname or "", urlsplit(self.url).port or 0), TIMEOUT
        )
        connection.settimeout(TIMEOUT)
        return connection

    @contextmanager
    def watch(self, query: str = "", path: str = CONFIG_MAPS, **headers: str) -> Iterator[Watch]:
        """Watch a collection while the block runs; yield the watch."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=TIMEOUT)
        try:
            connection.request("GET", f"{path}?watch=true&{query}", headers=headers)
            yield Watch(connection.getresponse())
        finally:
            connection.close()


class Watch:
    """The events of a watch, in the order of their arrival."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response
        assert response.status == 200, response.read()

    def next(self) -> Any:
        """Return the next event; return None at the end of the stream."""
        line = self.response.readline()
        return json.loads(line) if line else None

    def rest(self) -> list[Any]:
        """Return all remaining events up to the end of the stream."""
        return list(iter(self.next, None))


@contextmanager
def running(made: ApplicationAndLog | None = None, bounds: Bounds = DEFAULT) -> Iterator[Site]:
    """Serve an application with the namespace `default`."""
    made = made or make()
    add(made.log, a_namespace())
    with serving(made.app, bounds=bounds) as url:
        yield Site(url, made.log)


def add(log: EventLog, *objects: Object) -> None:
    """Append the creations of objects to a log."""
    log.append([Proposal(EventType.ADDED, obj, 0) for obj in objects], author=Author("test"))

"""A reflector that behaves like client-go's and stores all received events.

The reflector begins with a list, or, like client-go since 0.35, with a watch that sends the initial state. Then the
reflector only watches from the newest revision it has received, even after broken connections. Therefore the received
events must be the complete history of the resource.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.e2e.clients.client_go import TABLE, TYPED, ClientGo, ConnectionBroken, Unstructured, metadata
from tests.e2e.serving import Server

BACKOFF = 0.1
"""Seconds between two attempts to connect."""

END_OF_STATE = "k8s.io/initial-events-end"
WATCH = {"allowWatchBookmarks": "true", "timeoutSeconds": "599"}
STATE_FIRST = {**WATCH, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


class ReflectedEvent(NamedTuple):
    """One event of a watch."""

    type: str
    revision: int
    object: Unstructured


class Representation(NamedTuple):
    """The representation of objects that an informer requests."""

    list_accept: str
    watch_accept: str
    listed: Callable[[Unstructured], list[Unstructured]]
    watched: Callable[[Unstructured], Unstructured]
    shown: Callable[[Unstructured], Unstructured]
    """A function that returns the part of an object that an informer with this representation stores."""


def _partial(obj: Unstructured) -> Unstructured:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _whole(obj: Unstructured) -> Unstructured:
    return obj


def _items(answer: Unstructured) -> list[Unstructured]:
    """Return the items of a list with their kind and apiVersion, which the items of a typed list lack."""
    kind, version = answer["kind"].removesuffix("List"), answer["apiVersion"]
    return [{"kind": kind, "apiVersion": version, **item} for item in answer["items"]]


def _rows(table: Unstructured) -> list[Unstructured]:
    assert table["kind"] == "Table", table
    return [row["object"] for row in table["rows"]]


TYPED_FORM = Representation(TYPED, TYPED, _items, _whole, _whole)
METADATA_FORM = Representation(metadata("List"), metadata(""), _items, _whole, _partial)
TABLE_FORM = Representation(TABLE, TABLE, _rows, lambda table: _rows(table)[0], _partial)


class Reflector:
    """A reflector that follows the objects at `path` until it receives an event of the object `last`."""

    def __init__(
        self, server: Server, path: str, *, form: Representation = TYPED_FORM, streams: bool = True, selector: str = ""
    ) -> None:
        """Select objects by one label, `key=value`; if `streams` is set, the watch sends the initial state."""
        self.path, self.form, self.selector = path, form, selector
        self.state: dict[tuple[str, str], Unstructured] = {}
        """The initial state."""
        self.started_at = 0
        """The resourceVersion of the initial state."""
        self.history: list[ReflectedEvent] = []
        self.connections = 0
        self._server = server
        self._streams = streams
        self._selects = {"labelSelector": selector} if selector else {}
        self._newest = 0
        self._last = ""
        self._pause = threading.Event()

    def run(self, last: str) -> None:
        """Follow the resource until the object `last` is received; raise AssertionError for a response after which
        client-go could not continue.
        """
        self._last = last
        with ClientGo(self._server) as client:
            while not self._is_done:
                try:
                    self._step(client)
                except ConnectionBroken:
                    self._pause.wait(BACKOFF)

    @property
    def _is_done(self) -> bool:
        return bool(self.history) and self.history[-1].object["metadata"].get("name") == self._last

    def _step(self, client: ClientGo) -> None:
        if self.started_at:
            self._follow(client)
        elif self._streams:
            self._stream_state(client)
        else:
            self._list(client)

    def _list(self, client: ClientGo) -> None:
        query = {**self._selects, "limit": "500", "resourceVersion": "0"}
        code, answer = client.get(self.path, query, self.form.list_accept)
        assert code == 200, answer
        self.state = {_key(obj): obj for obj in self.form.listed(answer)}
        self.started_at = self._newest = int(answer["metadata"]["resourceVersion"])

    def _stream_state(self, client: ClientGo) -> None:
        """Read the initial state from a watch, and continue with the same watch."""
        state: dict[tuple[str, str], Unstructured] = {}
        with client.watch(self.path, {**STATE_FIRST, **self._selects}, self.form.watch_accept) as events:
            for type_, obj in self._shown(events):
                if type_ == "BOOKMARK":
                    assert obj["metadata"]["annotations"] == {END_OF_STATE: "true"}
                    self.state = state
                    self.started_at = self._newest = int(obj["metadata"]["resourceVersion"])
                    self._remember(events)
                    return
                assert type_ == "ADDED", type_
                state[_key(obj)] = obj

    def _follow(self, client: ClientGo) -> None:
        query = {**WATCH, **self._selects, "resourceVersion": str(self._newest)}
        with client.watch(self.path, query, self.form.watch_accept) as events:
            self.connections += 1
            self._remember(events)

    def _remember(self, events: Iterator[Unstructured]) -> None:
        for type_, obj in self._shown(events):
            self._newest = int(obj["metadata"]["resourceVersion"])
            self.history.append(ReflectedEvent(type_, self._newest, obj))
            if self._is_done:
                return

    def _shown(self, events: Iterator[Unstructured]) -> Iterator[tuple[str, Unstructured]]:
        for event in events:
            assert event["type"] != "ERROR", event
            yield event["type"], self.form.watched(event["object"])


def _key(obj: Unstructured) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]

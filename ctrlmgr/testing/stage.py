"""A cluster without HTTP: an engine with a log in memory. Tests call it with a method, a path, a query and a body.

Guarantees: the responses are those of the server; requests are not authenticated, and responses are not encoded.
Nothing runs in the background, and time changes only when `clock` is stepped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.plugin_registry import default_chain
from ctrlmgr.api import status_responses
from ctrlmgr.api.object import Object
from ctrlmgr.engine import request_options
from ctrlmgr.engine.admission_attributes import Admission
from ctrlmgr.engine.blocking_driver import Driver
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.engine.engine import Engine
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Answer, Listing, Target
from ctrlmgr.engine.request_options import Body, Requester
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.engine.watch_cache.watch import Selection
from ctrlmgr.errors import ApiError, Expired, MethodNotAllowed, NotFound, StatusDetails
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer.event_window import EventWindow
from ctrlmgr.kinds import builtin
from ctrlmgr.testing.fake_clock import FakeClock

REQUESTER = Requester("alice", ("system:masters",), "kubectl/v1.36.2 (linux/amd64)")
_KEYS = ("kind", "apiVersion", "metadata")


class Response(NamedTuple):
    """The response to a request; `body` is an object, a list, a Status or, for a watch, the events so far."""

    code: int
    body: Any
    warnings: Sequence[str] = ()
    annotations: Mapping[str, str] = {}
    """The annotations of the audit event about the request."""

    @property
    def message(self) -> str:
        """The message of the Status in the response."""
        return str(self.body["message"])


class _Path(NamedTuple):
    kind: Kind
    namespace: str
    name: str
    subresource: str


@cache
def builtin_kinds() -> Kinds:
    """Return kinds that all stages share, because they take long to compile."""
    return builtin.builtin_kinds()


class Stage:
    """A cluster without HTTP, for tests. The method `step` of the stage's clock advances time."""

    def __init__(
        self,
        *,
        log: EventLog | None = None,
        window: int = 10_000,
        seed: int = 1,
        admission: Admission | None = None,
        caller: Callable[[Call], Reply] | None = None,
        kinds: Kinds | None = None,
        plugins: Sequence[Plugin] = (),
    ) -> None:
        """Create a stage that serves `log`, by default an empty log.

        A stage with its own CustomResourceDefinitions needs its own `kinds`.

        `plugins` are admission plugins in addition to the default plugins.
        """
        self.clock = FakeClock()
        self.log = log if log is not None else MemoryEventLog(clock=self.clock, random=Random(seed))
        self.feed = EventWindow(self.log, clock=self.clock)
        self.cacher = Cacher(self.log, self.feed, window=window)
        self.kinds = builtin_kinds() if kinds is None else kinds
        self.engine = Engine(
            self.kinds,
            self.cacher,
            self.log,
            clock=self.clock,
            random=Random(seed),
            admission=admission or default_chain(self.kinds, self.clock, plugins),
        )
        self.driver = Driver(self.log, self.feed, self.cacher, patience=0, caller=caller)

    def namespace(self, name: str) -> Response:
        """Create a namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        return self.send("POST", "/api/v1/namespaces", body)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        media_type: str = "application/json",
        requester: Requester = REQUESTER,
    ) -> Response:
        """Send a request and return the response; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        parameters = {k: [v] for k, v in (query or {}).items()}
        try:
            return self._answer(method, path, Body(media_type, data), parameters, requester)
        except ApiError as error:
            return Response(error.code, status_responses.failure(error), error.warnings, error.annotations)

    def _answer(
        self, method: str, path: str, body: Body, query: request_options.Query, requester: Requester
    ) -> Response:
        place = self._parse(path)
        target = Target(*place)
        run, engine = self.driver.run, self.engine
        match method, bool(place.name):
            case "GET", True:
                obj = run(engine.get(target, request_options.parse_get(query)))
                return Response(200, obj.to_dict())
            case "GET", False:
                return self._list(place, query)
            case "POST", named if named == bool(place.subresource):
                return _shown(run(engine.create(target, body, request_options.parse_create(query), requester)))
            case "PUT", True:
                return _shown(run(engine.update(target, body, request_options.parse_update(query), requester)))
            case "PATCH", True:
                options = request_options.parse_patch(query, body.media_type)
                return _shown(run(engine.patch(target, body, options, requester)))
            case "DELETE", True if not place.subresource:
                return _shown(run(engine.delete(target, body, request_options.parse_delete(query), requester)))
            case "DELETE", False if "deletecollection" in place.kind.verbs and (
                place.namespace or not place.kind.namespaced
            ):
                listed = request_options.parse_list(query, place.kind)
                deleted = request_options.parse_delete(query)
                namespace = place.namespace or None
                listing = run(engine.delete_collection(place.kind, namespace, listed, body, deleted, requester))
                return Response(200, _list_of(place.kind, listing))
        raise MethodNotAllowed(details=StatusDetails())

    def _list(self, place: _Path, query: request_options.Query) -> Response:
        options = request_options.parse_list(query, place.kind)
        namespace = place.namespace or None
        if options.watch:
            return Response(200, self.watch(place.kind, namespace, options))
        return Response(200, _list_of(place.kind, self.driver.run(self.engine.list(place.kind, namespace, options))))

    def watch(self, kind: Kind, namespace: str | None, options: request_options.ListOptions) -> list[dict[str, Any]]:
        """Return all events of a watch so far."""
        events: list[dict[str, Any]] = []
        try:
            start = self.driver.run(self.engine.watch(kind, namespace, options))
            events += [{"type": "ADDED", "object": obj.to_dict()} for obj in start.initial]
            events += self._changes(start.selection, start.revision)
        except Expired as error:
            events.append({"type": "ERROR", "object": status_responses.failure(error)})
        return events

    def _changes(self, selection: Selection, revision: int) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        while True:
            changes = self.cacher.changes_after(revision, selection.kind.storage, 2)
            if changes is None:
                changes, whole = self.driver.run(self.engine.history(selection, revision, 2))
                revision = max(revision, self.cacher.oldest) if whole else revision
            elif not changes:
                return events
            for change in changes:
                revision = max(revision, change.revision)
                if event := selection.transition(change):
                    events.append({"type": event[0], "object": event[1].to_dict()})

    def _parse(self, path: str) -> _Path:
        parts = path.strip("/").split("/")
        if len(parts) < 3:
            raise MethodNotAllowed(details=StatusDetails())
        group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        kind = self.kinds.find(group, version, rest[0])
        subresource = rest[2] if len(rest) > 2 else ""
        if kind is None or (subresource and subresource not in kind.subresources):
            raise NotFound("the server could not find the requested resource", details=StatusDetails())
        if subresource and len(rest) == 3 and kind.namespaced and not namespace:
            raise NotFound("the server could not find the requested resource", details=StatusDetails())
        return _Path(kind, namespace, rest[1] if len(rest) > 1 else "", subresource)


def _shown(answer: Answer) -> Response:
    body = answer.object.to_dict() if answer.object is not None else answer.status
    return Response(answer.code, body, answer.warnings, answer.annotations)


def _list_of(kind: Kind, listing: Listing) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(listing.revision)}
    if listing.continue_token:
        metadata["continue"] = listing.continue_token
    if listing.remaining is not None:
        metadata["remainingItemCount"] = listing.remaining
    items = [_item(obj) for obj in listing.objects]
    return {"kind": kind.list_name, "apiVersion": kind.gvk.api_version, "metadata": metadata, "items": items}


def _item(obj: Object) -> dict[str, Any]:
    return {field: value for field, value in obj.to_dict().items() if field not in _KEYS[:2]}

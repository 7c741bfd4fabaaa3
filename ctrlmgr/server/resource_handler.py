"""Handles requests for resources: maps each HTTP request to a verb of the engine.

Guarantees:
- The engine determines the result of a request. This module determines only the form of the response.
- The handler validates query options before the request has any effect, and reads the request's body only if the verb
  needs the body.
- The handler completes a read that need not wait within one turn of the event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random
from typing import Any, TypeAlias, TypeVar

from ctrlmgr.api import status_responses
from ctrlmgr.api.resource import Key
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.service_account_claims import ISSUED
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.engine.engine import Engine
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.operations import Answer, Operation, Target
from ctrlmgr.engine.request_options import (
    Body,
    DeleteOptions,
    GetOptions,
    ListOptions,
    WriteOptions,
    parse_create,
    parse_delete,
    parse_get,
    parse_list,
    parse_patch,
    parse_update,
)
from ctrlmgr.engine.watch_cache.watch import Start
from ctrlmgr.errors import ApiError, BadRequest, Expired, NotAcceptable, RequestEntityTooLarge, RequestTimeout
from ctrlmgr.largebodies import jobs
from ctrlmgr.server.authn.review_resources import Question, Reviews
from ctrlmgr.server.authn.token_requests import TOKEN_REQUEST, TokenRequests
from ctrlmgr.server.connect_subresources import Runtime, connect_options, object_name
from ctrlmgr.server.container_connector import Connection, Connector, Make
from ctrlmgr.server.event_loop_driver import Driver
from ctrlmgr.server.largebodies.large_body_jobs import LargeBodyJobs, Listener
from ctrlmgr.server.presenting.message_streams import begin_watch
from ctrlmgr.server.presenting.negotiation import PLAIN, body_type, patch_type
from ctrlmgr.server.presenting.presentation import Presentation, Presentations
from ctrlmgr.server.presenting.responses import JSON_TYPE, NO_CACHE, warnings
from ctrlmgr.server.presenting.sending import Sender
from ctrlmgr.server.presenting.tabular import parse_include
from ctrlmgr.server.request import Request
from ctrlmgr.server.resource_endpoints import Endpoint, unknown_resource
from ctrlmgr.server.routes import ResourcePath
from ctrlmgr.server.watch.watching import Watches

T = TypeVar("T")

_SHAPING = frozenset({"create", "update", "patch"})
"""Verbs that need the kind's schema even if there are no objects of the kind yet."""

_ANY = GetOptions()
_NO_OPTIONS = WriteOptions()


class Call:
    """One request for a served resource: its endpoint, its target, and the representation of the response."""

    __slots__ = ("endpoint", "how", "path", "request", "target")

    def __init__(self, request: Request, endpoint: Endpoint, path: ResourcePath, target: Target) -> None:
        """Create a call whose response is plain JSON unless `negotiate` selects another representation."""
        self.request = request
        self.endpoint = endpoint
        self.path = path
        self.target = target
        self.how = PLAIN

    def negotiate(self) -> None:
        """Select the representation of the response from the Accept header.

        Raises `NotAcceptable` if the client accepts no supported representation.
        """
        request = self.request
        how = self.endpoint.accepts.negotiate(request.header(b"accept"))
        self.how = how._replace(pretty=True) if request.wants_pretty else how

    @property
    def namespace(self) -> str | None:
        """The namespace of a collection; None means all namespaces."""
        return (self.path.namespace or None) if self.endpoint.kind.namespaced else None

    @property
    def patches(self) -> Sequence[str]:
        """The patch types that a custom kind supports.

        The property is empty for built-in kinds, because all built-in kinds support the same patch types.
        """
        return self.endpoint.kind.patches if self.endpoint.kind.is_custom else ()

    @property
    def list_options(self) -> ListOptions:
        """Return the list options in the query of the request.

        The name in a `watch/` path is converted to a field selector.
        """
        query, name = self.request.query, self.path.name
        if name:
            if query.get("fieldSelector", [""])[0] not in ("", f"metadata.name={name}"):
                raise BadRequest("fieldSelector metadata.name doesn't match requested name")
            query = {**query, "fieldSelector": [f"metadata.name={name}"]}
        if self.path.watch:
            query = {**query, "watch": ["true"]}
        return parse_list(query, self.endpoint.kind)

    async def body(self, media_type: str) -> Body:
        """Read the body of the request."""
        return self.heard(media_type, await self.request.body())

    def heard(self, media_type: str, data: bytes) -> Body:
        """Return a body. If the request is audited, the body is also passed to the audit record after it is decoded."""
        record = self.request.audit
        return Body(media_type, data) if record is None else Body(media_type, data, record.record_object)


_Handler: TypeAlias = Callable[[Call], Awaitable[None]]


class Api:
    """Serves resources. Used on the event loop's thread only."""

    def __init__(
        self,
        engine: Engine,
        driver: Driver,
        watches: Watches,
        presentations: Presentations,
        sender: Sender,
        reviews: Reviews,
        tokens: TokenRequests | None,
        large: LargeBodyJobs,
        runtime: Runtime | None = None,
        kubelets: Make | None = None,
        *,
        random: Random,
    ) -> None:
        """Create a handler that runs operations of `engine` with `driver`, and serves watches with `watches`.

        If `tokens` is None, token requests get a 404 response. `runtime` serves simulated nodes, and `kubelets` serves
        all other nodes; if both are None, no node is reachable. `random` is used to choose endpoints of Services.
        `large` runs requests with large bodies in worker processes.
        """
        self._engine = engine
        self._connector = Connector(engine.cacher, runtime, kubelets, random)
        self._driver = driver
        self._watches = watches
        self._presentations = presentations
        self._sender = sender
        self._reviews = reviews
        self._tokens = tokens
        self._large = large
        self._handlers: dict[str, _Handler] = {
            "get": self._get,
            "list": self._list,
            "watch": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def close(self) -> None:
        """End all connections to containers; connections that start later end immediately."""
        self._connector.close()

    def answer(self, call: Call, verb: str) -> Awaitable[None]:
        """Return an awaitable that handles the call.

        Both the call of this method and the awaitable raise `ApiError` if the response is an error.
        """
        if call.endpoint.connects:
            return self._connect(call)
        if verb == "patch":  # the Content-Type is checked before Accept
            patch_type(call.request.header(b"content-type"), taken=call.patches)
        call.negotiate()
        if not call.endpoint.kind.is_prepared and self._needs(call.endpoint.kind, verb):
            return self._prepared(call, verb)
        return self._handlers[verb](call)

    def _needs(self, kind: Kind, verb: str) -> bool:
        """Return whether a verb needs the schema of the kind."""
        return verb in _SHAPING or bool(self._engine.cacher.list(kind.storage))

    async def _prepared(self, call: Call, verb: str) -> None:
        """Prepare the call's kind on another thread, because this can take long; then handle the call."""
        await self._driver.compute(call.endpoint.kind.prepare)
        await self._handlers[verb](call)

    async def _get(self, call: Call) -> None:
        query = call.request.query
        obj = await self._driver.run(self._engine.get(call.target, parse_get(query) if query else _ANY))
        await self._sender.whole(call.request, 200, self._presentation(call).one(obj), call.how)

    async def _list(self, call: Call) -> None:
        options = call.list_options
        if options.watch:
            await self._watch(call, options)
            return
        listing = await self._driver.run(self._engine.list(call.endpoint.kind, call.namespace, options))
        await self._sender.listing(call.request, self._presentation(call), listing, call.how)

    async def _watch(self, call: Call, options: ListOptions) -> None:
        if call.how.yaml:
            raise NotAcceptable(
                "only the following media types are accepted: application/json;stream=watch, "
                "application/vnd.kubernetes.protobuf;stream=watch"
            )
        kind, presentation = call.endpoint.kind, self._presentation(call)
        start = await self._started(self._engine.watch(kind, call.namespace, options))
        stream = await begin_watch(call.request, (JSON_TYPE, NO_CACHE))
        if isinstance(start, Start):
            begun = call.request.seat.release
            await self._watches.serve(stream, start, presentation, options, call.endpoint.watch_metrics, begun)
        else:
            await self._watches.fail(stream, start)

    async def _started(self, operation: Operation[Start]) -> Start | ApiError:
        """Return the start of a watch; if the watch cannot start, return the error that it sends as its only event."""
        try:
            return await self._driver.run(operation)
        except (Expired, RequestTimeout) as error:
            return error

    async def _create(self, call: Call) -> None:
        kind, request = call.endpoint.kind, call.request
        body = await call.body(body_type(request.header(b"content-type")))
        options = parse_create(request.query)
        if self._reviews.covers(kind):
            await self._review(call, body, options)
            return
        if call.target.subresource == "token":
            await self._issue(call, body, options)
            return
        await self._write(call, jobs.create, body, options)

    async def _review(self, call: Call, body: Body, options: WriteOptions) -> None:
        kind = call.endpoint.kind
        arguments = (call.target, body, options, call.request.requester)
        fields, new_warnings = await self._run(call, jobs.reviewed, *arguments, is_large=jobs.is_large(body, 1))
        question = Question(kind, call.path.namespace, fields, call.request.user, self._engine.now)
        answer = await self._reviews.answer(question)
        encoded = kind.codec.encode(answer)
        await self._sender.whole(call.request, 201, encoded + b"\n", call.how, warnings(new_warnings))

    async def _issue(self, call: Call, body: Body, options: WriteOptions) -> None:
        if self._tokens is None:
            raise unknown_resource()
        codec = self._engine.kinds.codec_for(TOKEN_REQUEST)
        if jobs.is_large(body, 1):
            raise RequestEntityTooLarge(f"Request entity is too large: limit of a TokenRequest is {jobs.LARGE}")
        fields, problems = codec.decode(body.data, body.media_type)
        if problems and options.field_validation == "Strict":
            raise codec.refuse_strictly(problems)
        if body.heard is not None:
            body.heard(fields, lambda: codec.encode(fields))
        self._tokens.check(call.target.name, call.target.namespace, fields)
        account = await self._driver.run(self._engine.get(call.target._replace(subresource=""), _ANY))
        new_warnings = [*(problems if options.field_validation == "Warn" else ())]
        complete = partial(self._tokens.complete, account)
        new_warnings += await self._admit(call, Verb.CREATE, fields, TOKEN_REQUEST, options, complete)
        answer = self._tokens.answer(account, fields)
        call.request.notes.annotations[ISSUED] = answer.credential_id
        new_warnings += answer.warnings
        encoded = codec.encode(answer.fields)
        await self._sender.whole(call.request, 201, encoded + b"\n", call.how, warnings(new_warnings))

    async def _update(self, call: Call) -> None:
        request = call.request
        body = await call.body(body_type(request.header(b"content-type")))
        options = parse_update(request.query)
        await self._write(call, jobs.update, body, options)

    async def _patch(self, call: Call) -> None:
        request = call.request
        media_type = patch_type(request.header(b"content-type"), taken=call.patches)
        body = Body(media_type, await request.body())
        if request.audit is not None and request.audit.wants_request:
            request.audit.set_request_object(await self._run(call, jobs.as_json, body, is_large=jobs.is_large(body, 1)))
        options = parse_patch(request.query, media_type)
        await self._write(call, jobs.patch, body, options)

    async def _delete(self, call: Call) -> None:
        request = call.request
        body, options = await self._delete_body(call), parse_delete(request.query)
        await self._write(call, jobs.delete, body, options)

    async def _delete_collection(self, call: Call) -> None:
        request = call.request
        body, options = await self._delete_body(call), parse_delete(request.query)
        if body is not None and jobs.is_large(body, 1):
            options, body = await self._run(call, jobs.options_of, body, options, is_large=True), None
        operation = self._engine.delete_collection(
            call.endpoint.kind, call.namespace, call.list_options, body, options, request.requester
        )
        listing = await self._driver.run(operation)
        await self._sender.listing(request, self._presentation(call), listing, call.how)

    async def _delete_body(self, call: Call) -> Body | None:
        data = await call.request.body()
        return call.heard(body_type(call.request.header(b"content-type")), data) if data else None

    async def _connect(self, call: Call) -> None:
        options: Unstructured = {}
        if call.target.subresource != "log":  # a log is read and needs no connection
            gvk = call.endpoint.shown
            if call.request.query.get("dryRun"):
                raise BadRequest("dryRun is not supported")
            is_folder = call.request.location.path.endswith("/")
            options = connect_options(gvk, call.request.query, call.path, is_folder=is_folder)
            new_warnings = await self._admit(call, Verb.CONNECT, options, gvk)
            # these warnings are sent even if the connection to the container fails
            call.request.headers = (*call.request.headers, *warnings(new_warnings))
        target = call.target._replace(subresource="", name=object_name(call.path.name))
        obj = await self._driver.run(self._engine.get(target, _ANY))
        connection = Connection(call.path.name, call.target.subresource, obj, options)
        await self._connector.answer(call.request, target, connection)

    async def _admit(
        self,
        call: Call,
        operation: Verb,
        body: Unstructured,
        kind: GroupVersionKind | None,
        options: WriteOptions = _NO_OPTIONS,
        complete: Callable[[Unstructured], None] = lambda body: None,
    ) -> Sequence[str]:
        """Run admission for an object that is not stored, and return the warnings for the client.

        `complete` is passed to `WriteEngine.admit`.
        """
        requester = call.request.requester
        target = call.target
        if not self._engine.admission.handles(target.kind.resource, target.subresource, operation):
            return ()
        admitted = self._engine.admit(target, operation, body, kind, options, requester, complete)
        return (await self._driver.run(admitted)).warnings

    async def _write(
        self,
        call: Call,
        write: Callable[..., Operation[Answer]],
        body: Body | None,
        options: WriteOptions | DeleteOptions,
    ) -> None:
        """Run a write, in a worker process if its body is large, and send its result."""
        target, requester = call.target, call.request.requester
        try:
            is_large = self._is_large(target, body)
            answer = await self._run(call, write, target, body, options, requester, is_large=is_large)
        except ApiError as error:
            call.request.notes.annotations.update(error.annotations)
            raise
        call.request.notes.annotations.update(answer.annotations)
        if call.request.audit is not None and answer.object is not None:
            call.request.audit.revision = answer.object.revision
        if answer.object is not None:
            shown = self._presentation(call).one(answer.object)
        else:
            shown = status_responses.encode(answer.status or status_responses.success())
        await self._sender.whole(call.request, answer.code, shown, call.how, warnings(answer.warnings))

    def _is_large(self, target: Target, body: Body | None) -> bool:
        """Return whether the request body, or the object that it changes, is large."""
        cost = target.kind.strategy.validation_cost
        if body is not None and jobs.is_large(body, cost(body.data)):
            return True
        current = self._engine.state.get(target.kind.storage, Key(target.namespace, target.name))
        return current is not None and jobs.is_large_object(current, cost(current.body))

    async def _run(self, call: Call, job: Callable[..., Operation[T]], *arguments: Any, is_large: bool) -> T:
        """Run a job, in a worker process if the request body is large; return the job's result, or raise its error."""
        if not is_large:
            return await self._driver.run(job(self._engine, *arguments))
        record = call.request.audit
        is_heard = any(isinstance(each, Body) and each.heard is not None for each in arguments)
        listener = Listener(record.record_object, record.wants_request) if record is not None and is_heard else None
        sent = (each._replace(heard=None) if isinstance(each, Body) else each for each in arguments)
        result: T = await self._large.run(
            call.request.user.name, job, *sent, obey=self._driver.perform, listener=listener
        )
        return result

    def _presentation(self, call: Call) -> Presentation:
        form = call.how.form
        include = parse_include(call.request.query) if form.kind == "Table" else ""
        return self._presentations.of(call.endpoint.kind, call.endpoint.shown, form, include)

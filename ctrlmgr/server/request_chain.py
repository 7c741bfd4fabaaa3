"""Implements the handler chain: every request passes through the following steps in this order.

| step | determines | may answer with |
|---|---|---|
| outer filters | headers of the answer: CORS, HSTS (`outer_filters`, before this chain) | 204, 429 |
| request info | the resource and the verb, whether or not the resource exists | 500 |
| watch termination | whether a stopping server refuses the watch | 503 |
| deadline | the maximum duration of the request (`request_deadlines`) | 400, 504 |
| authentication | the sender | 401 |
| tracing | the span of the request, if tracing is on | |
| audit | the audit level; later steps add facts to the audit record, which is completed with the answer | |
| impersonation | the user to act as, if the headers name one | 400, 403 |
| fairness | whether the request may run now; it may have to wait | 429 |
| authorization | whether the user may make the request | 403 |
| verb | the answer; a write passes admission within the engine, where its object is known | the verb's errors |

Guarantees:
- Responses reveal nothing to unauthorized clients about which objects exist, because 401 and 403 are decided before
  404.
- Steps that call no other process do not wait, except for priority and fairness.
- Every request is decided on a state that contains all writes that were acknowledged before the request arrived.
  Therefore a revoked permission is invalid on every connection at once.
- A watch, or a connection to a container, ends at most a minute after its credentials have expired or its user has lost
  the permission to start it. If `ends_watches` is not set, the permission is not checked again.

Source: apiserver `pkg/server/config.go` (`DefaultBuildHandlerChain`), `pkg/endpoints/filters`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec
import structlog

from ctrlmgr.audit.policy import Stage
from ctrlmgr.audit.request_record import DEPRECATED
from ctrlmgr.authentication.header_lines import HeaderLine
from ctrlmgr.authentication.user import CredentialsRefused
from ctrlmgr.authorization.attributes import Attributes, refusal
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.authorization.impersonation import PREFIX, Impersonation, wanted_user
from ctrlmgr.engine.api_errors import forbidden, not_found
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Target
from ctrlmgr.errors import BadRequest, ServiceUnavailable
from ctrlmgr.server.aggregating.proxy_handler import Aggregator
from ctrlmgr.server.auditing.audit_filter import Auditing
from ctrlmgr.server.authn.access import Authenticator
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts
from ctrlmgr.server.authn.watch_revalidation import WatchRevalidation
from ctrlmgr.server.authz.long_running_authorization import RepeatedAuthorization
from ctrlmgr.server.event_loop_driver import BatchListener
from ctrlmgr.server.filters.in_flight_limits import Seat
from ctrlmgr.server.filters.request_deadlines import RequestDeadlines, answer_in_time
from ctrlmgr.server.filters.request_spans import begin_request_span
from ctrlmgr.server.filters.running_requests import RunningRequests
from ctrlmgr.server.filters.storage_version_barrier import StorageVersionBarrier
from ctrlmgr.server.pages.nonresource_pages import Pages
from ctrlmgr.server.peers.peer_proxy import PeerProxy
from ctrlmgr.server.presenting.responses import NO_SNIFFING, Response, refused, text, warnings
from ctrlmgr.server.request import Request
from ctrlmgr.server.resource_endpoints import Place
from ctrlmgr.server.resource_handler import Call
from ctrlmgr.tracing import spans
from ctrlmgr.tracing.latencies import AUTHENTICATION, AUTHORIZATION, IMPERSONATION, QUEUE_WAIT

log = structlog.get_logger(__name__)

_STOPPING = refused(ServiceUnavailable("apiserver is shutting down"))
_WATCH_REFUSED = _STOPPING._replace(
    body=_STOPPING.body + b"\n", headers=(*_STOPPING.headers, NO_SNIFFING, (b"retry-after", b"1"))
)
"""The response to a new watch while watches end within a grace period (apiserver `pkg/server/filters/waitgroup.go`)."""

_UPGRADING = frozenset({"attach", "exec", "portforward"})
"""Subresources of pods that require the verb create for any method (`AuthorizePodWebsocketUpgradeCreatePermission`)."""


class Answering(Protocol):
    """Handles requests for resources."""

    def answer(self, call: Call, verb: str) -> Awaitable[None]:
        """Return an awaitable that handles the call.

        Both the call of this method and the awaitable raise `ApiError` if the response is an error.
        """


class Limits(Protocol):
    """Limits the number of requests that run at the same time."""

    def seat(self, request: Request, attributes: Attributes, /) -> Seat:
        """Take a place for a request, and return the place, which the request holds until `end`.

        Raises `Overloaded` if no place is free.
        """


class ChainBackend(Protocol):
    """The interface of the backend that the handler chain uses."""

    @property
    def kinds(self) -> Kinds:
        """The kinds that are served."""

    @property
    def api(self) -> Answering:
        """The handler of requests for resources."""

    def step(self) -> None:
        """Apply those acknowledged events to the cache that are available without waiting."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Run the backend on the current event loop while the context is open."""

    def add_batch_listener(self, listener: BatchListener) -> None:
        """Call `listener` before and after each turn of the event loop in which several requests are answered."""

    def end_watches(self) -> None:
        """End all watches; watches that start later end immediately."""

    async def end_watches_within(self, grace: float) -> None:
        """End all watches one after another within `grace` seconds, and return when all watches have ended."""


class Chain:
    """The handler chain of a server. Used on the event loop's thread only."""

    def __init__(
        self,
        backend: ChainBackend,
        pages: Pages,
        authenticator: Authenticator,
        authorizer: Authorizer,
        limits: Limits,
        auditing: Auditing | None = None,
        *,
        ends_watches: bool = True,
        aggregator: Aggregator | None = None,
        deadlines: RequestDeadlines,
        barrier: StorageVersionBarrier | None = None,
        peers: PeerProxy | None = None,
    ) -> None:
        """Create a chain that passes requests for resources to `backend`, and all other requests to `pages`.

        `auditing` records the audit events of requests. `aggregator` handles requests for versions that extension
        servers serve. If `ends_watches` is set, a watch ends when its user loses the permission to start it.
        `deadlines` limits the time of requests. `barrier` refuses writes until StorageVersions are published. `peers`
        handles requests for resources that only other serving processes serve.
        """
        self._deadlines = deadlines
        self._peers = peers
        self._barrier = barrier
        self.running = RunningRequests()
        """Counts the requests that are not long-running; a stopping server may wait for these requests."""
        self.refuses_watches = False
        """Whether new watches are refused, because the server ends its watches within a grace period."""
        self._auditing = auditing
        self._aggregator = aggregator
        self._backend = backend
        self._pages = pages
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._limits = limits
        self._impersonation = Impersonation(authorizer)
        self.watch_revalidation = WatchRevalidation(
            authenticator, RepeatedAuthorization(authorizer) if ends_watches else None
        )
        """Ends watches whose credentials have expired or whose user has lost the permission for the watch."""

    async def answer(self, request: Request, place: Place) -> None:
        """Process a request; raises `ApiError` if the response is an error."""
        if place.location.problem:
            problem = f"failed to create RequestInfo: {place.location.problem}, {request.uri}"
            await request.respond(_undecided(request.uri, problem))
            return
        attributes = place.attributes(request.method, request.query)
        if self.refuses_watches and attributes.verb == "watch":
            await request.respond(_WATCH_REFUSED)
            return
        try:
            seconds = self._deadlines.seconds(request, attributes)
        except BadRequest:
            if self._auditing is not None:
                self._auditing.begin(request, attributes, None)
            raise
        if seconds is None:
            await self._answer(request, place, attributes)
        else:
            with self.running:
                await answer_in_time(self._answer(request, place, attributes), seconds, request)

    async def _answer(self, request: Request, place: Place, attributes: Attributes) -> None:
        """Process a request whose maximum duration is known; raises `ApiError` if the response is an error."""
        self._backend.step()
        parts = RequestParts(request.raw_headers, request.certificates, request.location.path, request.notes)
        try:
            with request.stage(AUTHENTICATION):
                sender = request.user = await self._authenticator.authenticate(parts)
        except CredentialsRefused:
            if self._auditing is not None:
                self._auditing.begin(request, attributes, None)
            raise
        finally:
            if request.notes.warnings:
                request.headers = (*request.headers, *warnings(request.notes.warnings))
        if spans.tracer is not None:
            request.span = begin_request_span(request, attributes)
        if self._auditing is not None:
            may = self._auditing.begin(request, attributes, sender)
            if (self._auditing.waits or not may) and not await self._is_kept(self._auditing, request, may=may):
                return
        if request.raw_headers.read(_impersonates):
            with request.stage(IMPERSONATION):
                await self._impersonate(request, attributes)
        seat = request.seat = self._limits.seat(request, attributes)
        if request.latencies is not None:
            request.logged_seat = seat
        try:
            if seat.waits:
                with request.stage(QUEUE_WAIT):
                    await seat.turn()
            with request.stage(AUTHORIZATION):
                verdict = self._authorizer.authorize(request.user, attributes)
                if verdict is None:
                    verdict = await self._authorizer.ask(request.user, attributes)
            if request.audit is not None:
                request.audit.verdict = verdict
            if not verdict.allows:
                if verdict.error:
                    await request.respond(_undecided(request.uri, verdict.error))
                    return
                raise refusal(request.user, attributes, verdict.reason)
            endpoint = place.endpoint
            if attributes.verb == "watch" or (endpoint is not None and endpoint.connects):
                with self.watch_revalidation.holding(request, parts, sender, _lasting(attributes)):
                    await self._perform(request, place, attributes)
            else:
                await self._perform(request, place, attributes)
        finally:
            seat.end()

    async def _is_kept(self, auditing: Auditing, request: Request, *, may: bool) -> bool:
        """Return whether the request may continue after its first audit event; if not, respond with 500.

        `may` is the result of the audit backends that do not wait. The method waits for the slow audit backends, too.
        """
        if may and request.audit is not None:
            may = await auditing.stored(request.audit, Stage.REQUEST_RECEIVED)
        if not may:
            request.audit = None
            await request.respond(_undecided(request.uri, "failed to store audit event"))
        return may

    async def _impersonate(self, request: Request, attributes: Attributes) -> None:
        """Set the request's user to the user that the impersonation headers name."""
        requested = wanted_user(request.raw_headers)
        if requested is not None:
            taken = await self._impersonation.impersonate(request.user, requested, attributes)
            request.user = taken.user
            if request.audit is not None:
                request.audit.impersonated, request.audit.constraint = taken.user, taken.constraint

    async def _perform(self, request: Request, place: Place, attributes: Attributes) -> None:
        """Handle a request that is authorized."""
        request.performed_at = request.monotonic()
        if self._barrier is not None:
            self._barrier.check(request.user, attributes)
        endpoint, path, target = place.endpoint, place.location.resource, place.target
        remote = self._aggregator.find(place.location) if self._aggregator is not None else None
        if self._aggregator is not None and remote is not None:
            await self._aggregator.answer(request, remote, attributes)
        elif endpoint is None and self._peers is not None and (found := self._peers.find(request, path)):
            assert path is not None, "only requests for resources are forwarded to peers"
            await self._peers.answer(request, found, path, attributes)
        elif path is None:
            await request.respond(await self._pages.answer(request))
        elif endpoint is None or target is None or not endpoint.is_place_for(request.method):
            await request.respond(self._pages.not_found(request.location))
        else:
            if endpoint.headers and endpoint.serves(request.method):
                request.headers = (*request.headers, *endpoint.headers) if request.headers else endpoint.headers
                if request.audit is not None:
                    request.notes.annotations[DEPRECATED] = "true"
            if endpoint.connects and path.subresource in _UPGRADING and attributes.verb != "create":
                await self._check_upgrade(request, target, attributes)
            if endpoint.lacks:
                raise not_found(endpoint.kind.resource, target.name)
            verb = endpoint.verb(request.method)
            counted = "watch" if attributes.verb == "watch" else verb
            request.metrics = endpoint.metrics(counted, dry_run="dryRun" in request.query)
            await self._backend.api.answer(Call(request, endpoint, path, target), verb)

    async def _check_upgrade(self, request: Request, target: Target, attributes: Attributes) -> None:
        """Require the verb create for exec, attach and portforward.

        The check is necessary because a WebSocket always uses the method GET, which would count as a read.
        """
        creation = attributes._replace(verb="create")
        verdict = self._authorizer.authorize(request.user, creation)
        if verdict is None:
            verdict = await self._authorizer.ask(request.user, creation)
        if not verdict.allows:
            raise forbidden(target.kind.resource, target.name, verdict.reason)


def _lasting(attributes: Attributes) -> Attributes:
    """Return the permission that a request needs as long as the request runs.

    For a stream of a pod, the function returns the permission to create the stream.
    """
    is_stream = attributes.resource == "pods" and not attributes.group and attributes.subresource in _UPGRADING
    return attributes._replace(verb="create") if is_stream else attributes


def _undecided(uri: str, problem: str) -> Response:
    """Log a request that cannot be parsed or authorized, and return a 500 (`responsewriters.InternalError`)."""
    log.error("parsing or authorizing request failed", uri=uri, error=problem)
    message = f"Internal Server Error: {msgspec.json.encode(uri).decode()}: {problem}"
    return text(500, message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") + "\n")


def _impersonates(headers: Sequence[HeaderLine]) -> bool:
    """Return whether any header requests impersonation."""
    return any(name.startswith(PREFIX) for name, _ in headers)

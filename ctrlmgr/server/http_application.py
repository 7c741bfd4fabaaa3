"""Passes each request through the handler chain, and sends a response for every error.

Guarantees:
- The response to every error is a `Status`. An unexpected error is logged, and the response is a 500 without details.
- The metrics count and time every request for a resource exactly once, under kube-apiserver's names.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from random import Random

import structlog

from ctrlmgr.api import status_responses
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.clock import Clock
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.errors import ApiError, CtrlmgrError, InternalError, NotAcceptable
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.response_stream import Disconnected
from ctrlmgr.server.aggregating.proxy_handler import Aggregator
from ctrlmgr.server.auditing.audit_filter import Auditing
from ctrlmgr.server.authn.access import Authenticator
from ctrlmgr.server.filters.in_flight_limits import FREE, READS, WRITES, InFlightLimits, Overloaded
from ctrlmgr.server.filters.outer_filters import OuterFilters
from ctrlmgr.server.filters.request_deadlines import RequestDeadlines
from ctrlmgr.server.filters.request_ids import RequestIds
from ctrlmgr.server.filters.request_log import log_request
from ctrlmgr.server.filters.request_spans import end_request_span
from ctrlmgr.server.filters.slow_requests import SLOW, log_trace
from ctrlmgr.server.filters.storage_version_barrier import StorageVersionBarrier
from ctrlmgr.server.pages.nonresource_pages import Pages
from ctrlmgr.server.peers.peer_proxy import PeerProxy
from ctrlmgr.server.presenting.negotiation import Accepts, Representation, of_error
from ctrlmgr.server.presenting.responses import overloaded, refused, warnings
from ctrlmgr.server.request import Request
from ctrlmgr.server.request_chain import Chain, ChainBackend, Limits
from ctrlmgr.server.resource_endpoints import Place, Places
from ctrlmgr.tracing import latencies
from ctrlmgr.tracing.latencies import Latencies

log = structlog.get_logger(__name__)

_CLIENT_CLOSED = 499
"""The status code in metrics for a request whose client closed the connection before the response."""

_TRACE_BITS = 31
"""The number of bits in the number of a trace."""

_UNEXPECTED = "Internal error occurred: something unexpected went wrong; the server's log says what"


class App:
    """The HTTP application of a process, which answers requests; all connections share one instance."""

    def __init__(
        self,
        backend: ChainBackend,
        pages: Pages,
        authenticator: Authenticator,
        authorizer: Authorizer,
        *,
        clock: Clock,
        random: Random,
        limits: Limits | None = None,
        kinds: Kinds | None = None,
        auditing: Auditing | None = None,
        ends_watches: bool = True,
        aggregator: Aggregator | None = None,
        filters: OuterFilters | None = None,
        deadlines: RequestDeadlines | None = None,
        watch_grace: float = 0.0,
        logs_requests: bool = False,
        barrier: StorageVersionBarrier | None = None,
        peers: PeerProxy | None = None,
    ) -> None:
        """Create an application that serves the resources of `backend`, and `pages`.

        `authenticator` determines the users of requests, and `authorizer` decides whether the requests are allowed. If
        `kinds` is given, only these kinds are served over HTTP; the engine of `backend` may have further kinds.
        `random` generates request ids, `limits` limits concurrent requests, and `auditing` records audit events. If
        `ends_watches` is set, a watch ends when its user loses the permission to start it. `aggregator` handles
        requests for versions that extension servers serve. `filters` are the steps that a request passes before
        authentication. `deadlines` limits the time of requests, by default to a minute. When the server stops, watches
        end evenly within `watch_grace` seconds, or at once if `watch_grace` is 0. `logs_requests` says whether a log
        line is written for each request. `barrier` refuses writes until StorageVersions are published. `peers` handles
        requests for resources that only other serving processes serve.
        """
        self._filters = filters
        self._watch_grace = watch_grace
        self._logs_requests = logs_requests
        self._measures = logs_requests or auditing is not None
        self._deadlines = deadlines or RequestDeadlines()
        self._aggregator = aggregator
        self._peers = peers
        self._backend = backend
        self._ids = RequestIds(random)
        self._random = random
        self._clock = clock
        self._places = Places(backend.kinds if kinds is None else kinds)
        self._errors = Accepts(transforms=False)
        limits = limits or InFlightLimits(READS, WRITES)
        self._auditing = auditing
        if auditing is not None:
            backend.add_batch_listener(auditing)
        self._chain = Chain(
            backend,
            pages,
            authenticator,
            authorizer,
            limits,
            auditing,
            ends_watches=ends_watches,
            aggregator=aggregator,
            deadlines=self._deadlines,
            barrier=barrier,
            peers=peers,
        )

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one HTTP request."""
        began = self._clock.monotonic()
        place = self._places.find(exchange.path)
        request = Request(exchange, place.location, self._ids, self._clock.monotonic)
        measured = request.latencies = latencies.begin(self._clock.monotonic) if self._measures else None
        try:
            at_once = self._filters.begin(request) if self._filters is not None else None
            if at_once is None:
                await self._chain.answer(request, place)
            else:
                await request.respond(at_once)
        except Disconnected:
            request.code = request.code or _CLIENT_CLOSED
        except CtrlmgrError as error:
            await self._refuse(request, status_responses.api_error(error))
            _let_go(error)
        except Exception as error:
            log.exception("request failed", method=request.method, path=place.location.path)
            if request.audit is not None:
                request.audit.panicked = True
            await self._refuse(request, InternalError(_UNEXPECTED))
            _let_go(error)
        finally:
            if request.metrics is not None:
                ended = self._clock.monotonic()
                request.metrics.answered(request.code, ended - began)
                if ended - request.performed_at >= SLOW:
                    self._log_slow(request, place, ended)
            if request.span is not None:
                end_request_span(request)
            if measured is not None:
                self._end_measuring(request, place, measured, self._clock.monotonic() - began)
            # the record and the request refer to each other; this breaks the reference cycle
            record, request.audit = request.audit, None
            if record is not None and self._auditing is not None:
                stage = self._auditing.end(request, record)
                if self._auditing.waits:
                    await self._auditing.stored(record, stage)

    def _end_measuring(self, request: Request, place: Place, measured: Latencies, seconds: float) -> None:
        """Write the latencies of a request to the request log and, if the request was slow, to its audit event."""
        latencies.end()
        if request.audit is not None:
            request.notes.annotations.update(measured.annotations(seconds))
        if self._logs_requests:
            verb = place.attributes(request.method, request.query).verb or request.method
            log_request(request, verb, request.logged_seat, seconds, measured)
        request.logged_seat = FREE  # the request and its seats refer to each other; this breaks the reference cycle

    def _log_slow(self, request: Request, place: Place, ended: float) -> None:
        """Write the trace of a slow request, unless the request was a stream."""
        attributes = place.attributes(request.method, request.query)
        if attributes.verb != "watch" and not (place.endpoint is not None and place.endpoint.connects):
            log_trace(request, attributes, ended, self._random.getrandbits(_TRACE_BITS))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the backend and the revalidation of watches on the running event loop.

        Requests are processed only while this context is open.
        """
        passing_on = self._aggregator.running() if self._aggregator is not None else nullcontext()
        forwarding = self._peers.running() if self._peers is not None else nullcontext()
        async with self._backend.running(), passing_on, forwarding:
            revalidation = self._chain.watch_revalidation.run()
            looking = asyncio.create_task(revalidation, name="credentials and rights of watches")
            try:
                yield
            finally:
                looking.cancel()

    async def drain(self) -> None:
        """End all watches and connections to containers, because the server is stopping.

        If the filters refuse new requests from now on, the running requests end before the watches. Watches end within
        their grace period, if one is configured.
        """
        async with asyncio.TaskGroup() as ending:
            if self._filters is not None and self._filters.refuses_at_the_end:
                self._filters.stop()
                ending.create_task(self._chain.running.ended(self._deadlines.longest), name="running requests")
            if self._watch_grace:
                self._chain.refuses_watches = True
                ending.create_task(self._backend.end_watches_within(self._watch_grace), name="watches")
        self._backend.end_watches()
        if self._aggregator is not None:
            self._aggregator.drain()

    async def _refuse(self, request: Request, error: ApiError) -> None:
        if request.has_timed_out:
            return
        if request.code:
            log.warning("response ended early", path=request.location.path, error=str(error))
            return
        if request.audit is not None:
            request.audit.answered(error.code, status_responses.encode(status_responses.failure(error)))
        answer = overloaded(error) if isinstance(error, Overloaded) else refused(error, self._how(request))
        await request.respond(answer, warnings(error.warnings))

    def _how(self, request: Request) -> Representation:
        """Return the encoded form of an error, in the media type that the client accepts or in JSON."""
        accept = request.header(b"accept")
        try:
            how = self._errors.negotiate(accept)
        except NotAcceptable:
            how = of_error(accept)
        return how._replace(pretty=how.pretty or request.wants_pretty)


def _let_go(error: BaseException | None) -> None:
    """Remove the tracebacks of an error that was sent to the client, and of the errors that caused it.

    A traceback refers to the frames, and a frame can refer to the error. A reference cycle between an error and its
    frames would keep all objects in the frames, such as a body of megabytes, until the garbage collector runs.
    """
    while error is not None and error.__traceback__ is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__

"""The ASGI application: who asks, whether they may, what about; and whatever happens, an answer.

Guarantees:
- Nobody learns what is here before it is known who they are and that they may ask: 401 and 403 come before 404.
- Every error is answered with a `Status`; one that nobody expected is logged and answered as 500 without details.
- Every request about a resource is counted and timed, once, under kube-apiserver's metric names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

import structlog

from ctrlmgr.api import status
from ctrlmgr.api.resource import LEASES
from ctrlmgr.clock import Clock
from ctrlmgr.errors import ApiError, CtrlmgrError, InternalError, NotAcceptable
from ctrlmgr.server import limits
from ctrlmgr.server.access import Attributes, Authenticator, Authorizer, refusal
from ctrlmgr.server.api import Call
from ctrlmgr.server.backend import Backend
from ctrlmgr.server.endpoints import Endpoints, attributes_of
from ctrlmgr.server.limits import InFlight
from ctrlmgr.server.negotiation import PLAIN, Accepts, Representation
from ctrlmgr.server.pages import Pages
from ctrlmgr.server.request import Request
from ctrlmgr.server.responses import Receive, Scope, Send, refused, warnings
from ctrlmgr.server.routes import ResourcePath, Routes
from ctrlmgr.server.stream import Disconnected

log = structlog.get_logger(__name__)

_READING = frozenset({"GET", "HEAD"})
_CLIENT_CLOSED = 499
"""What is counted for a client that did not wait for its answer."""

_UNEXPECTED = "Internal error occurred: something unexpected went wrong; the server's log says what"


class App:
    """Answers HTTP requests; made for one process, shared by all its connections."""

    def __init__(
        self,
        backend: Backend,
        pages: Pages,
        authenticator: Authenticator,
        authorizer: Authorizer,
        *,
        clock: Clock,
        max_reads: int = limits.READS,
        max_writes: int = limits.WRITES,
    ) -> None:
        """Serve the resources of `backend`, and `pages` beside them, to whom `authenticator` and `authorizer` admit.

        At most `max_reads` reads and `max_writes` writes are worked on at a time.
        """
        self._backend = backend
        self._pages = pages
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._clock = clock
        self._routes = Routes()
        self._endpoints = Endpoints(backend.kinds)
        self._errors = Accepts(transforms=False)
        self._reads = InFlight("readOnly", max_reads)
        self._writes = InFlight("mutating", max_writes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] != "http":
            raise ValueError(f"this server speaks HTTP only, not {scope['type']}")
        request = Request(scope, receive, send, self._routes.locate(scope["raw_path"]))
        try:
            await self._answer(request)
        except Disconnected:
            return
        except CtrlmgrError as error:
            await self._refuse(request, status.api_error(error))
        except Exception:
            log.exception("request failed", method=request.method, path=request.location.path)
            await self._refuse(request, InternalError(_UNEXPECTED))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be at work on the running event loop; requests are answered only while it is."""
        async with self._backend.running():
            yield

    def drain(self) -> None:
        """Let go of who would stay for long: the server stops."""
        self._backend.end_watches()

    async def _answer(self, request: Request) -> None:
        path = request.location.resource
        attributes = self._admit(request, path)
        if path is None:
            await request.respond(await self._pages.answer(request))
            return
        endpoint = self._endpoints.find(path)
        if endpoint is None:
            await request.respond(self._pages.nowhere(request.location))
            return
        request.headers = endpoint.headers
        with self._place(request, attributes):
            await self._answer_resource(Call(request, endpoint, path), attributes)

    def _admit(self, request: Request, path: ResourcePath | None) -> Attributes:
        """Find out who asks for what; raises `Unauthorized`, or `Forbidden` if they may not."""
        request.user = user = self._authenticator.authenticate(request.raw_headers, request.certificate)
        if path is None:
            attributes = Attributes(request.method.lower(), request.location.path)
        else:
            attributes = attributes_of(request.method, request.location.path, path, request.query)
        if not self._authorizer.authorize(user, attributes):
            raise refusal(user, attributes)
        return attributes

    def _place(self, request: Request, attributes: Attributes) -> AbstractContextManager[None]:
        """Return the place a request takes while it is worked on; what lasts, or keeps leaders alive, needs none."""
        if attributes.verb == "watch":
            return nullcontext()
        if request.method in _READING:
            return self._reads
        return nullcontext() if (attributes.group, attributes.resource) == LEASES else self._writes

    async def _answer_resource(self, call: Call, attributes: Attributes) -> None:
        began = self._clock.monotonic()
        request, endpoint = call.request, call.endpoint
        verb = endpoint.verb(request.method)
        try:
            await self._backend.api.answer(call, verb)
        except Disconnected:
            request.code = request.code or _CLIENT_CLOSED
            raise
        except CtrlmgrError as error:
            await self._refuse(request, status.api_error(error))
        finally:
            counted = "watch" if attributes.verb == "watch" else verb
            metrics = endpoint.metrics(call.path, counted, dry_run="dryRun" in request.query)
            metrics.answered(request.code or 500, self._clock.monotonic() - began)

    async def _refuse(self, request: Request, error: ApiError) -> None:
        if request.code:
            log.warning("an answer was cut short", path=request.location.path, error=str(error))
            return
        await request.respond(refused(error, self._how(request)), warnings(error.warnings))

    def _how(self, request: Request) -> Representation:
        """Return how to tell of an error: as was asked for if that is possible, else in JSON."""
        try:
            how = self._errors.negotiate(request.header(b"accept"))
        except NotAcceptable:
            how = PLAIN
        return how._replace(pretty=how.pretty or request.wants_pretty)

"""The application: who asks, whether they may, what about; and whatever happens, an answer.

Guarantees:
- Nobody learns what is here before it is known who they are and that they may ask: 401 and 403 come before 404.
- Every error is answered with a `Status`; one that nobody expected is logged and answered as 500 without details.
- Every request about a resource is counted and timed, once, under kube-apiserver's metric names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from typing import Protocol

import structlog

from ctrlmgr.api import status
from ctrlmgr.api.resource import LEASES
from ctrlmgr.clock import Clock
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.errors import ApiError, CtrlmgrError, InternalError, NotAcceptable
from ctrlmgr.server import limits
from ctrlmgr.server.api import Call
from ctrlmgr.server.authn.access import Attributes, Authenticator, Authorizer, refusal
from ctrlmgr.server.endpoints import Place, Places
from ctrlmgr.server.http.exchange import Exchange
from ctrlmgr.server.http.request import Request
from ctrlmgr.server.http.responses import refused, warnings
from ctrlmgr.server.http.stream import Disconnected
from ctrlmgr.server.limits import InFlight
from ctrlmgr.server.pages.pages import Pages
from ctrlmgr.server.presenting.negotiation import PLAIN, Accepts, Representation

log = structlog.get_logger(__name__)

_READING = frozenset({"GET", "HEAD"})
_CLIENT_CLOSED = 499
"""What is counted for a client that did not wait for its answer."""

_UNEXPECTED = "Internal error occurred: something unexpected went wrong; the server's log says what"


class Answering(Protocol):
    """What answers requests about resources."""

    def answer(self, call: Call, verb: str) -> Awaitable[None]:
        """Return what answers a call when it is awaited; both raise the error to answer with."""


class Behind(Protocol):
    """What an application has behind it: a `Backend`, or what stands for one."""

    @property
    def kinds(self) -> Kinds:
        """What there is."""

    @property
    def api(self) -> Answering:
        """What answers requests."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Be at work on the running event loop."""

    def end_watches(self) -> None:
        """End all watches, and those that begin from now on as soon as they have begun."""


class App:
    """Answers HTTP requests; made for one process, shared by all its connections."""

    def __init__(
        self,
        backend: Behind,
        pages: Pages,
        authenticator: Authenticator,
        authorizer: Authorizer,
        *,
        clock: Clock,
        max_reads: int = limits.READS,
        max_writes: int = limits.WRITES,
        kinds: Kinds | None = None,
    ) -> None:
        """Serve the resources of `backend`, and `pages` beside them, to whom `authenticator` and `authorizer` admit.

        Only those of `kinds` are served if it is given: a process may run its engine for itself alone.
        At most `max_reads` reads and `max_writes` writes are worked on at a time.
        """
        self._backend = backend
        self._pages = pages
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._clock = clock
        self._places = Places(backend.kinds if kinds is None else kinds)
        self._errors = Accepts(transforms=False)
        self._reads = InFlight("readOnly", max_reads)
        self._writes = InFlight("mutating", max_writes)

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        began = self._clock.monotonic()
        place = self._places.find(exchange.path)
        request = Request(exchange, place.location)
        try:
            await self._answer(request, place)
        except Disconnected:
            request.code = request.code or _CLIENT_CLOSED
        except CtrlmgrError as error:
            await self._refuse(request, status.api_error(error))
        except Exception:
            log.exception("request failed", method=request.method, path=place.location.path)
            await self._refuse(request, InternalError(_UNEXPECTED))
        finally:
            if request.metrics is not None:
                request.metrics.answered(request.code, self._clock.monotonic() - began)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be at work on the running event loop; requests are answered only while it is."""
        async with self._backend.running():
            yield

    def drain(self) -> None:
        """Let go of who would stay for long: the server stops."""
        self._backend.end_watches()

    async def _answer(self, request: Request, place: Place) -> None:
        endpoint, path, target = place.endpoint, place.location.resource, place.target
        attributes = self._admit(request, place)
        if path is None:
            await request.respond(await self._pages.answer(request))
        elif endpoint is None or target is None:
            await request.respond(self._pages.nowhere(request.location))
        else:
            request.headers = endpoint.headers
            verb = endpoint.verb(request.method)
            counted = "watch" if attributes.verb == "watch" else verb
            request.metrics = endpoint.metrics(counted, dry_run="dryRun" in request.query)
            with self._limit(request, attributes):
                await self._backend.api.answer(Call(request, endpoint, path, target), verb)

    def _admit(self, request: Request, place: Place) -> Attributes:
        """Find out who asks for what; raises `Unauthorized`, or `Forbidden` if they may not."""
        request.user = user = self._authenticator.authenticate(request.raw_headers, request.certificate)
        attributes = place.attributes(request.method, request.query)
        if not self._authorizer.authorize(user, attributes):
            raise refusal(user, attributes, self._authorizer.reason(user, attributes))
        return attributes

    def _limit(self, request: Request, attributes: Attributes) -> AbstractContextManager[None]:
        """Return what a request is counted in while it is worked on; what lasts, or keeps leaders alive, is not."""
        if attributes.verb == "watch":
            return nullcontext()
        if attributes.resource == LEASES.plural and attributes.group == LEASES.group and attributes.verb != "list":
            return nullcontext()
        return self._reads if request.method in _READING else self._writes

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

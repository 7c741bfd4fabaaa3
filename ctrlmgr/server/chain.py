"""The chain: what happens to every request, in this order.

| step | it finds out | it may refuse with |
|---|---|---|
| request info | what the request is about, whether or not that exists | 500 |
| authentication | who sends it | 401 |
| audit | how much of it is written down; the record grows with the steps, and ends when it is answered | |
| impersonation | for whom it is made, if not for its sender | 400, 403 |
| fairness | whether there is room for it now | 429 |
| authorization | whether that may be done | 403 |
| verb | the answer; a write passes admission within the engine, where its object is known | what the verb says |

Guarantees:
- A client learns nothing of what is here before it is known who it is and that it may ask: 401 and 403 come before 404.
- A step that needs no other process is passed without waiting.
- What was acknowledged before a request came counts for it: rights that were taken are gone, on any connection.
- A watch lasts no longer than the credentials that it was begun with, but for a minute, nor than the right to begin it,
  unless that is not looked at again.

Rules: apiserver `pkg/server/config.go` (`DefaultBuildHandlerChain`), `pkg/endpoints/filters`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec
import structlog

from ctrlmgr.audit.policy import Stage
from ctrlmgr.audit.record import DEPRECATED
from ctrlmgr.authentication.header_lines import HeaderLine
from ctrlmgr.authentication.user import CredentialsRefused
from ctrlmgr.authorization.attributes import Attributes, refusal
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.authorization.impersonation import PREFIX, Impersonation, wanted_user
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.refusals import forbidden, not_found
from ctrlmgr.server.api import Call
from ctrlmgr.server.auditing.step import Auditing
from ctrlmgr.server.authn.access import Authenticator
from ctrlmgr.server.authn.parts import RequestParts
from ctrlmgr.server.authn.watch_revalidation import WatchRevalidation
from ctrlmgr.server.authz.lasting_rights import LastingRights
from ctrlmgr.server.driver import Round
from ctrlmgr.server.endpoints import Place
from ctrlmgr.server.http.request import Request
from ctrlmgr.server.http.responses import Response, text, warnings
from ctrlmgr.server.limits import InFlightLimits
from ctrlmgr.server.pages.pages import Pages

log = structlog.get_logger(__name__)

_UPGRADING = frozenset({"attach", "exec", "portforward"})
"""Subresources of pods through which one acts, whatever the method (`AuthorizePodWebsocketUpgradeCreatePermission`)."""


class Answering(Protocol):
    """What answers requests about resources."""

    def answer(self, call: Call, verb: str) -> Awaitable[None]:
        """Return what answers a call when it is awaited; both raise the error to answer with."""


class Behind(Protocol):
    """What a chain leads to: a `Backend`, or what stands for one."""

    @property
    def kinds(self) -> Kinds:
        """What there is."""

    @property
    def api(self) -> Answering:
        """What answers requests."""

    def step(self) -> None:
        """Take in what has been acknowledged, as far as that is known without waiting."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Be at work on the running event loop."""

    def tell_of_rounds(self, around: Round) -> None:
        """Have `around` told when several requests are answered one after the other."""

    def end_watches(self) -> None:
        """End all watches, and those that begin from now on as soon as they have begun."""


class Chain:
    """See the module's docstring; used on the event loop only."""

    def __init__(
        self,
        backend: Behind,
        pages: Pages,
        authenticator: Authenticator,
        authorizer: Authorizer,
        limits: InFlightLimits,
        auditing: Auditing | None = None,
        *,
        ends_watches: bool = True,
    ) -> None:
        """Lead to `backend` for resources and to `pages` for all else; `auditing` writes requests down.

        `ends_watches` says whether a watch ends that could no longer be begun.
        """
        self._auditing = auditing
        self._backend = backend
        self._pages = pages
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._limits = limits
        self._impersonation = Impersonation(authorizer)
        self.watch_revalidation = WatchRevalidation(authenticator, LastingRights(authorizer) if ends_watches else None)
        """Ends watches whose credentials or rights have ended."""

    async def answer(self, request: Request, place: Place) -> None:
        """Answer a request; raises the error to answer with."""
        if place.location.problem:
            problem = f"failed to create RequestInfo: {place.location.problem}, {request.uri}"
            await request.respond(_undecided(request.uri, problem))
            return
        attributes = place.attributes(request.method, request.query)
        self._backend.step()
        parts = RequestParts(request.raw_headers, request.certificates, request.location.path, request.told)
        try:
            sender = request.user = await self._authenticator.authenticate(parts)
        except CredentialsRefused:
            if self._auditing is not None:
                self._auditing.begin(request, attributes, None)
            raise
        finally:
            if request.told.warnings:
                request.headers = warnings(request.told.warnings)
        if self._auditing is not None:
            may = self._auditing.begin(request, attributes, sender)
            if (self._auditing.waits or not may) and not await self._is_kept(self._auditing, request, may=may):
                return
        if request.raw_headers.read(_impersonates):
            await self._impersonate(request, attributes)
        with self._limits.seat(request.method, attributes, request.user) as request.seat:
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
            if attributes.verb == "watch":
                with self.watch_revalidation.holding(request, parts, sender, attributes):
                    await self._perform(request, place, attributes)
            else:
                await self._perform(request, place, attributes)

    async def _is_kept(self, auditing: Auditing, request: Request, *, may: bool) -> bool:
        """Return whether a request has been written down that has to be; answer it if that cannot be done.

        It is known already whether it `may` be made for all that is told of it without waiting.
        """
        if may and request.audit is not None:
            may = await auditing.stored(request.audit, Stage.REQUEST_RECEIVED)
        if not may:
            request.audit = None
            await request.respond(_undecided(request.uri, "failed to store audit event"))
        return may

    async def _impersonate(self, request: Request, attributes: Attributes) -> None:
        """Have a request made for the user that its headers name."""
        wanted = wanted_user(request.raw_headers)
        if wanted is not None:
            taken = await self._impersonation.impersonate(request.user, wanted, attributes)
            request.user = taken.user
            if request.audit is not None:
                request.audit.impersonated, request.audit.constraint = taken.user, taken.constraint

    async def _perform(self, request: Request, place: Place, attributes: Attributes) -> None:
        """Answer a request that may be made."""
        endpoint, path, target = place.endpoint, place.location.resource, place.target
        if path is None:
            await request.respond(await self._pages.answer(request))
        elif endpoint is None or target is None or not endpoint.is_place_for(request.method):
            await request.respond(self._pages.nowhere(request.location))
        else:
            if endpoint.headers and endpoint.serves(request.method):
                request.headers = (*request.headers, *endpoint.headers) if request.headers else endpoint.headers
                if request.audit is not None:
                    request.told.annotations[DEPRECATED] = "true"
            if endpoint.connects and path.subresource in _UPGRADING and attributes.verb != "create":
                await self._check_upgrade(request, target, attributes)
            if endpoint.lacks:
                raise not_found(endpoint.kind.resource, target.name)
            verb = endpoint.verb(request.method)
            counted = "watch" if attributes.verb == "watch" else verb
            request.metrics = endpoint.metrics(counted, dry_run="dryRun" in request.query)
            await self._backend.api.answer(Call(request, endpoint, path, target), verb)

    async def _check_upgrade(self, request: Request, target: Target, attributes: Attributes) -> None:
        """Refuse to act within a pod to those who may only read: the method of a web socket is always GET."""
        asked = attributes._replace(verb="create")
        verdict = self._authorizer.authorize(request.user, asked)
        if verdict is None:
            verdict = await self._authorizer.ask(request.user, asked)
        if not verdict.allows:
            raise forbidden(target.kind.resource, target.name, verdict.reason)


def _undecided(uri: str, problem: str) -> Response:
    """Answer that a request could not be read or authorized (`responsewriters.InternalError`)."""
    log.error("a request could not be made", uri=uri, error=problem)
    said = f"Internal Server Error: {msgspec.json.encode(uri).decode()}: {problem}"
    return text(500, said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") + "\n")


def _impersonates(headers: Sequence[HeaderLine]) -> bool:
    """Whether any header is about impersonation."""
    return any(name.startswith(PREFIX) for name, _ in headers)

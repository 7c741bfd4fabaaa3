"""Authorizes requests by sending SubjectAccessReviews to another server.

Guarantees:
- The authorizer caches the other server's verdict for the configured time, which differs for allowed and refused
  requests. The authorizer does not cache failed calls. It does not cache verdicts about requests with very long
  attributes either, because long attributes would fill the memory.
- If the webhook has match conditions, the authorizer calls the other server only for requests that meet the match
  conditions (`match_condition_checks`).
- A request whose verdict is cached does not wait, and does not delay other requests.
- If the other server does not respond, the verdict is "no opinion" or, if the webhook is configured to deny on failure,
  a denial. The verdict contains the error, so that the client can distinguish a failure from a refusal.

Source: apiserver `plugin/pkg/authorizer/webhook/webhook.go`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import structlog

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, length, review_of
from ctrlmgr.authorization.authorization_configuration import Webhook
from ctrlmgr.authorization.authorizer import Decision, RuleListing, Verdict
from ctrlmgr.caches import TTLCache
from ctrlmgr.clock import Clock
from ctrlmgr.metrics import AUTHORIZATION_WEBHOOK
from ctrlmgr.server.authz.match_condition_checks import Matching
from ctrlmgr.server.review_client import ReviewFailed, ReviewServer

log = structlog.get_logger(__name__)

_ENTRIES: Final = 8192
_SIZE: Final = 32 * 1024 * 1024
"""Maximum total size of the cached requests and verdicts, in bytes."""
_LONGEST: Final = 10_000
"""The minimum length in characters of a request's attributes at which the verdict is not cached."""
_BOTH: Final = "webhook subject access review returned both allow and deny response"
_GROUPS: Final = {"v1": "groups", "v1beta1": "group"}
"""The name of the field with a user's groups in a SubjectAccessReview, by API version."""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    allowed: bool = False
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_read = msgspec.json.Decoder(_Review).decode


class WebhookAuthorizer:
    """An `Authorizer` that calls another server, on one event loop. Any thread may read cached verdicts."""

    def __init__(self, webhook: Webhook, *, clock: Clock) -> None:
        """Create an authorizer that calls the server of `webhook`.

        Raises `SettingsError` if the kubeconfig is unusable.
        """
        self._server = ReviewServer(webhook.config, patience=webhook.patience, clock=clock)
        self._webhook = webhook
        self._matching = Matching(webhook, clock=clock)
        self._verdicts: TTLCache[bytes, Verdict] = TTLCache(
            "authorization-webhook", entries=_ENTRIES, size=_SIZE, clock=clock
        )

    def authorize(self, user: User, attributes: Attributes) -> Verdict | None:
        """Return the cached verdict; None if the authorizer must call the other server."""
        if (verdict := self._matching.verdict(user, attributes)) is not None:
            return verdict
        return self._verdicts.get(self._question(user, attributes))

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        """Return the cached verdict; if no verdict is cached, return the verdict of the other server."""
        if (known := self.authorize(user, attributes)) is not None:
            return known
        question, webhook = self._question(user, attributes), self._webhook
        try:
            status = _read(await self._server.ask(question)).status
        except (ReviewFailed, ValueError, msgspec.MsgspecError) as error:
            AUTHORIZATION_WEBHOOK.labels(webhook.name, "error").inc()
            log.error("authorization webhook unreachable", server=self._server.url, error=str(error))
            return webhook.unasked(str(error))
        AUTHORIZATION_WEBHOOK.labels(webhook.name, "success").inc()
        verdict = _verdict(status)
        keep_for = webhook.authorized_ttl if status.allowed else webhook.unauthorized_ttl
        if keep_for and length(attributes) < _LONGEST and len(question) < 2 * _LONGEST:
            self._verdicts.put(question, verdict, keep_for, len(question) + len(verdict.reason))
        return verdict

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return an incomplete listing, because a webhook cannot list rules."""
        return RuleListing((), incomplete=True, error="webhook authorizer does not support user rule resolution")

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()

    def _question(self, user: User, attributes: Attributes) -> bytes:
        version = self._webhook.version
        spec: dict[str, Any] = {
            **_as_sent(review_of(attributes)),
            **({"user": user.name} if user.name else {}),
            **({_GROUPS[version]: user.groups} if user.groups else {}),
            **({"extra": user.extra} if user.extra else {}),
            **({"uid": user.uid} if user.uid else {}),
        }
        api_version = f"authorization.k8s.io/{version}"
        review = {"kind": "SubjectAccessReview", "apiVersion": api_version, "metadata": {}, "spec": spec}
        return msgspec.json.encode({**review, "status": {"allowed": False}})


def _as_sent(value: Any) -> Any:
    """Return the value without its empty fields, because the authorizer sends no empty fields to the other server."""
    if isinstance(value, dict):
        return {name: _as_sent(each) for name, each in value.items() if each}
    return [_as_sent(each) for each in value] if isinstance(value, list) else value


def _verdict(status: _Status) -> Verdict:
    if status.denied:
        return Verdict(Decision.DENY, status.reason, _BOTH if status.allowed else "")
    return Verdict(Decision.ALLOW if status.allowed else Decision.NO_OPINION, status.reason)

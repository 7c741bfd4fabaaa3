"""The token cleaner: deletes bootstrap tokens that have expired or have an invalid expiration.

Source: `pkg/controller/bootstrap/tokencleaner.go`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ctrlmgr.api.resource import Key
from ctrlmgr.authentication.bootstrap_tokens import expires_at, is_token, texts
from ctrlmgr.authentication.service_account_claims import SECRETS
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.token_cleaner import DESCRIPTOR
from ctrlmgr.errors import Conflict, NotFound
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch


class TokenCleaner:
    """Reconciles the Secret of a bootstrap token."""

    def __init__(self, secrets: Lister, *, clock: Clock) -> None:
        """Create a reconciler that reads the Secrets from `secrets`."""
        self._secrets = secrets
        self._clock = clock

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Delete the Secret if its token has expired, otherwise requeue the Secret.

        Raises the errors of `client` if the deletion fails.
        """
        secret = self._secrets.get(key)
        if secret is None or not is_token(secret):
            return None
        expires, now = expires_at(texts(secret)), self._clock.now()
        if expires is None:
            return None
        if expires > now:
            return Result((expires - now) / 1_000_000)
        try:
            client.delete(secret)
        except (Conflict, NotFound):
            return None  # The Secret was replaced or deleted meanwhile.
        return None


def _token_key(change: Change) -> Iterable[Key]:
    is_gone = change.type is EventType.DELETED
    return (change.object.key,) if not is_gone and is_token(change.object) else ()


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    secrets = context.informers.informer(SECRETS)
    cleaner = TokenCleaner(secrets.lister, clock=context.clock)
    return assemble(DESCRIPTOR, context, cleaner, [Watch(secrets, _token_key, after_sync=True)])

"""The ServiceAccount token controller: fills token Secrets, and deletes the token Secrets of deleted ServiceAccounts.

Guarantees:
- If the annotation of a Secret of type `kubernetes.io/service-account-token` names an existing ServiceAccount, then the
  ServiceAccount's token, the CA certificate and the namespace are written to the Secret. The controller creates no
  token Secrets.
- If a ServiceAccount was deleted or replaced by a new ServiceAccount of the same name, its token Secrets are deleted.
  Deleted Secrets are removed from the list in their ServiceAccount.

Source: `pkg/controller/serviceaccount/tokens_controller.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.authentication.legacy_claims import ACCOUNT_NAME, ACCOUNT_UID, TYPE, is_token_of
from ctrlmgr.authentication.service_account_claims import SECRETS, SERVICE_ACCOUNTS
from ctrlmgr.client import Client
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.issuer_dependencies import IdentityContext
from ctrlmgr.controllers.serviceaccount_token import DESCRIPTOR, Options
from ctrlmgr.controllers.serviceaccount_token.decide import NewToken, desired_secret, token_maker, without_reference
from ctrlmgr.errors import NamespaceTerminating, NotFound
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change, Informer, Lister
from ctrlmgr.manager import Controller, Watch

RETRIES: Final = 10

_BY_ACCOUNT: Final = "service account"
"""The name of the index of token Secrets by the namespace and name of their ServiceAccount."""

_ACCOUNT, _SECRET, _GONE = "account", "secret", "gone"


class _Typed(msgspec.Struct, frozen=True, gc=False):
    type: str = ""


class _DeletedSecret(NamedTuple):
    """A token Secret that was deleted, with those of its fields that a key contains."""

    secret: str
    account: str
    uid: str


class TokenReconciler:
    """Reconciles a ServiceAccount's Secrets, one Secret, or the reference to a deleted Secret, depending on the key."""

    def __init__(self, accounts: Lister, secrets: Lister, root_ca: bytes, new_token: NewToken) -> None:
        """Create a reconciler that writes into Secrets the CA `root_ca` (PEM) and tokens that `new_token` returns."""
        self._accounts = accounts
        self._secrets = secrets
        self._root_ca = root_ca
        self._new_token = new_token

    def reconcile(self, key: Key, client: Client) -> None:
        """Reconcile the object that the key names; raises the errors of `client` if a write fails."""
        what, _, rest = key.name.partition("/")
        try:
            if what == _ACCOUNT:
                for secret in self._secrets.by_index(_BY_ACCOUNT, str(Key(key.namespace, rest))):
                    self._see_to(secret, client)
            elif what == _SECRET:
                secret_now = self._secrets.get(Key(key.namespace, rest))
                if secret_now is not None and is_token_secret(secret_now):
                    self._see_to(secret_now, client)
            else:
                self._forget(key.namespace, _DeletedSecret(*rest.split("/")), client)
        except (NotFound, NamespaceTerminating):
            return  # The object was deleted meanwhile.

    def _see_to(self, secret: Object, client: Client) -> None:
        name = secret.annotations.get(ACCOUNT_NAME, "")
        account = self._accounts.get(Key(secret.namespace, name))
        if account is None or not is_token_of(secret, account):
            if not secret.is_terminating:
                client.delete(secret)
            return
        desired = desired_secret(secret, account, self._root_ca, self._new_token)
        if desired is not None and not secret.is_terminating:
            client.update(desired)

    def _forget(self, namespace: str, gone: _DeletedSecret, client: Client) -> None:
        account = self._accounts.get(Key(namespace, gone.account))
        if account is None or gone.uid not in ("", account.uid) or self._secrets.get(Key(namespace, gone.secret)):
            return
        changed = without_reference(account, gone.secret)
        if changed is not None:
            client.update(changed)


def is_token_secret(secret: Object) -> bool:
    """Return whether a Secret is a token Secret that names a ServiceAccount."""
    return secret.view(_Typed).type == TYPE and bool(secret.annotations.get(ACCOUNT_NAME))


def _account_key(change: Change) -> Iterable[Key]:
    """Return the key of a created or deleted ServiceAccount, so that its Secrets are reconciled."""
    if change.type is EventType.MODIFIED:
        return ()
    account = change.object
    return (Key(account.namespace, f"{_ACCOUNT}/{account.name}"),)


def _secret_key(change: Change) -> Iterable[Key]:
    secret = change.object
    if not is_token_secret(secret):
        return ()
    if change.type is not EventType.DELETED:
        return (Key(secret.namespace, f"{_SECRET}/{secret.name}"),)
    named, uid = secret.annotations[ACCOUNT_NAME], secret.annotations.get(ACCOUNT_UID, "")
    return (Key(secret.namespace, f"{_GONE}/{secret.name}/{named}/{uid}"),) if "/" not in named + uid else ()


def _index(secrets: Informer) -> None:
    def accounts(secret: Object) -> Iterable[str]:
        if is_token_secret(secret):
            yield str(Key(secret.namespace, secret.annotations[ACCOUNT_NAME]))

    secrets.add_index(_BY_ACCOUNT, accounts)


def build(context: IdentityContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    accounts, secrets = context.informers.informer(SERVICE_ACCOUNTS), context.informers.informer(SECRETS)
    _index(secrets)
    new_token = token_maker(context.identity.token_key())
    return assemble(
        DESCRIPTOR,
        context,
        TokenReconciler(accounts.lister, secrets.lister, context.root_ca.encode(), new_token),
        [Watch(accounts, _account_key), Watch(secrets, _secret_key, after_sync=True)],
        workers=options.concurrent_serviceaccount_token_syncs,
        max_retries=RETRIES,
    )

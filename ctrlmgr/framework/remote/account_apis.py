"""The clients with which controllers send requests as their own ServiceAccounts.

Guarantees: a missing ServiceAccount is created. The process requests a token with its own credentials when a controller
first writes. The process renews the token before the token expires, or when the API server refuses the token.

Source: `pkg/controller/clientbuilder.go` of client-go and `controller-manager` (`DynamicClientBuilder`).
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import msgspec

from ctrlmgr.clock import Clock
from ctrlmgr.controllers.descriptor import NAMESPACE
from ctrlmgr.errors import AlreadyExists, NotFound, Unauthorized
from ctrlmgr.framework.remote.remote_api import Api, path_of
from ctrlmgr.framework.remote.throttle import Throttle
from ctrlmgr.settings.kubeconfig import Access, trusting

_LIFE: Final = 3600
"""The requested lifetime of a token in seconds."""
_RENEW_AFTER: Final = 0.8 * _LIFE


class AccountApis:
    """Creates a client of the API server for each ServiceAccount."""

    def __init__(self, access: Access, api: Api, throttle: Throttle, *, clock: Clock) -> None:
        """Request tokens with `api`; the clients connect to the server of `access`, without its credentials."""
        self._api = api
        self._throttle = throttle
        self._clock = clock
        trust = trusting(access.authority, b"", access.is_checked) if access.context is not None else None
        self._access = replace(access, user={}, certificate=b"", context=trust)

    def api_of(self, account: str) -> Api:
        """Return the client that sends requests as a ServiceAccount in kube-system."""
        tokens = AccountToken(self._api, account, clock=self._clock)
        return _AccountApi(self._access, self._throttle, tokens, program=self._api.program)


class AccountToken:
    """The current token of one ServiceAccount; thread-safe."""

    def __init__(self, api: Api, account: str, *, clock: Clock) -> None:
        """Request the tokens of `account` with `api`."""
        self._api = api
        self._account = account
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._renew_at = 0.0

    def current(self, refused: str = "") -> str:
        """Return a valid token; `refused` is a token that the API server has refused, if any."""
        with self._lock:
            if not self._token or self._token == refused or self._clock.monotonic() >= self._renew_at:
                self._renew_at = self._clock.monotonic() + _RENEW_AFTER
                self._token = self._requested()
            return self._token

    def _requested(self) -> str:
        try:
            return self._new_token()
        except NotFound:
            with suppress(AlreadyExists):
                self._create()
            return self._new_token()

    def _new_token(self) -> str:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _LIFE},
        }
        path = path_of("v1", "serviceaccounts", NAMESPACE, self._account, "token")
        answer: dict[str, Any] = msgspec.json.decode(self._api.call("POST", path, msgspec.json.encode(request)))
        return str(answer["status"]["token"])

    def _create(self) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self._account}}
        self._api.call("POST", path_of("v1", "serviceaccounts", NAMESPACE), msgspec.json.encode(account))


class _AccountApi(Api):
    def __init__(self, access: Access, throttle: Throttle, tokens: AccountToken, *, program: str) -> None:
        super().__init__(access, throttle, program=program)
        self._tokens = tokens

    def call(self, *arguments: Any, **options: Any) -> bytes:
        token = self._authorized(self._tokens.current())
        try:
            return super().call(*arguments, **options)
        except Unauthorized:
            self._authorized(self._tokens.current(refused=token))
            return super().call(*arguments, **options)

    def _authorized(self, token: str) -> str:
        self._headers = {**self._headers, "authorization": f"Bearer {token}"}
        return token

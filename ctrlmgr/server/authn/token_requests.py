"""Requests for a token of a service account (`serviceaccounts/NAME/token`, `kubectl create token`).

Rules: `pkg/registry/core/serviceaccount/storage/token.go`, `pkg/apis/authentication/validation`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ctrlmgr.api.field import FieldError, invalid, refuse
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.engine.refusals import conflict, not_found
from ctrlmgr.errors import BadRequest
from ctrlmgr.server.authn.service_account_tokens import ISSUER, Bound, Find, TokenIssuer, bindable

TOKEN_REQUEST = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")

_USUAL = 3600
_SHORTEST = 600
_LONGEST = 1 << 32


class TokenRequests:
    """Answers requests for tokens."""

    def __init__(self, issuer: TokenIssuer, find: Find) -> None:
        """Have `issuer` make tokens, bound to what `find` finds."""
        self._issuer = issuer
        self._find = find

    def answer(self, account: Object, request: Unstructured) -> Unstructured:
        """Return a TokenRequest with its token; raises `Invalid`, `BadRequest`, `NotFound` or `Conflict`."""
        metadata = {**(request.get("metadata") or {}), "name": account.name, "namespace": account.namespace}
        spec = dict(request.get("spec") or {})
        # The codec fills in null where Go has no zero to leave out.
        audiences = spec["audiences"] = spec.get("audiences") or [ISSUER]
        seconds = spec["expirationSeconds"] = _USUAL if (asked := spec.get("expirationSeconds")) is None else asked
        if errors := _errors(seconds):
            raise refuse(TOKEN_REQUEST.kind, TOKEN_REQUEST.group, "", errors)
        bound = self._bound(account, spec.get("boundObjectRef"))
        token, expires = self._issuer.issue(account, audiences, seconds, bound)
        until = datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = {"token": token, "expirationTimestamp": until}
        return {**request, "metadata": metadata, "spec": spec, "status": status}

    def _bound(self, account: Object, reference: dict[str, Any] | None) -> Bound | None:
        if reference is None:
            return None
        kind, name, uid = (reference.get(field, "") for field in ("kind", "name", "uid"))
        resource = bindable(kind)
        if resource is None:
            raise BadRequest(f"cannot bind token to object of type {kind}")
        obj = self._find(resource, Key("" if kind == "Node" else account.namespace, name))
        if obj is None:
            raise not_found(resource, name)
        if uid and uid != obj.uid:
            detail = f"the UID in the bound object reference ({uid}) does not match the UID in record. "
            raise conflict(resource, name, f"{detail}The object might have been deleted and then recreated")
        return Bound(kind, name, obj.uid)


def _errors(seconds: int) -> list[FieldError]:
    field = "spec.expirationSeconds"
    if seconds < _SHORTEST:
        return [invalid(field, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST:
        return [invalid(field, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []

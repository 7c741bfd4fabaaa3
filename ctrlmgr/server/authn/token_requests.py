"""Answers token requests of service accounts (`serviceaccounts/NAME/token`, `kubectl create token`).

Guarantees: the objects to which a token is bound exist when the token is issued. A token that is bound to a pod belongs
to the pod's own service account. The lifetime of a token exceeds neither the requested lifetime nor the server's limit.
Only a token that a kubelet requests for a projected volume is valid for a year; the server records each use of this
token after the first hour.

Source: Kubernetes' `pkg/registry/core/serviceaccount/storage/token.go`, `pkg/apis/authentication/validation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.field import FieldError, invalid, refuse
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key, Resource
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.authentication.service_account_claims import (
    EXTENDED,
    SECRETS,
    SERVICE_ACCOUNTS,
    WARN_AFTER,
    Bound,
    Find,
    Reference,
    credential_id,
)
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.engine.api_errors import conflict, not_found, terminating
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.errors import BadRequest
from ctrlmgr.golang.go_text import quote
from ctrlmgr.server.authn.service_account_tokens import TokenIssuer

TOKEN_REQUEST = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")

_NAMED = Resource(TOKEN_REQUEST.group, TOKEN_REQUEST.kind)
_BINDABLE = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}

_USUAL = 3600
_SHORTEST = 600
_LONGEST = 1 << 32


class TokenAnswer(NamedTuple):
    """The response to a TokenRequest."""

    fields: Unstructured
    """The TokenRequest, with the new token in its status."""
    warnings: Sequence[str]
    credential_id: str
    """The identifier of the token in audit logs."""


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    service_account_name: str = ""
    node_name: str = ""


class _Pod(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


class TokenRequests:
    """Answers token requests."""

    def __init__(
        self, issuer: TokenIssuer, find: Find, *, clock: Clock, longest: int = 0, extends: bool = True
    ) -> None:
        """Create an instance that issues tokens with `issuer` for at most `longest` seconds (0 means unlimited).

        `find` reads the bound objects. If `extends` is set, tokens for kubelets are valid for a year, even if the
        kubelet requests a shorter lifetime.
        """
        self._issuer = issuer
        self._find = find
        self._clock = clock
        self._longest = longest
        self._extends = extends

    def check(self, name: str, namespace: str, request: Unstructured) -> None:
        """Check a TokenRequest's metadata and that its namespace is not terminating; set the namespace in the request.

        Raises `Invalid`, `BadRequest`, `NotFound` or `NamespaceTerminating` if a check fails.
        """
        within = self._find(NAMESPACES, Key("", namespace))
        if within is None:
            raise not_found(NAMESPACES, namespace)
        if within.is_terminating:
            raise terminating(SERVICE_ACCOUNTS, name, namespace)
        metadata = metadata_of(request)
        if (metadata.get("namespace") or namespace) != namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = namespace  # admission must get the namespace
        if metadata.get("name", name) not in ("", name):
            detail = "must match the service account name if specified"
            error = invalid("metadata.name", metadata["name"], detail)
            raise refuse(TOKEN_REQUEST.kind, TOKEN_REQUEST.group, name, [error])

    def complete(self, account: Object, request: Unstructured) -> None:
        """Set the defaults of a TokenRequest, and the fields that the server sets, before validating admission runs."""
        given = request.get("metadata") or {}  # a wrong uid is refused later, in `answer`
        request["metadata"] = {
            "uid": account.uid,
            **given,
            "name": account.name,
            "namespace": account.namespace,
            "creationTimestamp": format_time_seconds(self._clock.now()),
        }
        spec = request["spec"] = dict(request.get("spec") or {})
        spec["audiences"] = spec.get("audiences") or list(self._issuer.audiences)

    def answer(self, account: Object, request: Unstructured) -> TokenAnswer:
        """Return a TokenRequest with its token.

        Raises `Invalid`, `BadRequest`, `NotFound` or `Conflict` if no token can be issued.
        """
        now = self._clock.now()
        metadata = {**(request.get("metadata") or {}), "name": account.name, "namespace": account.namespace}
        if metadata.setdefault("uid", account.uid) not in ("", account.uid):
            detail = (
                f"the UID in the token request ({metadata['uid']}) does not match the UID of the service account "
                f"({account.uid})"
            )
            raise conflict(_NAMED, account.name, detail)
        metadata.update(uid=account.uid, creationTimestamp=format_time_seconds(now))
        # The codec sets a field to null if Go has no zero value to omit.
        spec = dict(request.get("spec") or {})
        audiences = spec["audiences"] = spec.get("audiences") or list(self._issuer.audiences)
        seconds = spec["expirationSeconds"] = (
            _USUAL if (requested := spec.get("expirationSeconds")) is None else requested
        )
        if errors := _errors(seconds):
            raise refuse(TOKEN_REQUEST.kind, TOKEN_REQUEST.group, "", errors)
        bound = self._bound(account, spec.get("boundObjectRef"))
        warnings = []
        if 0 < self._longest < seconds:
            warnings.append(f"requested expiration of {seconds} seconds shortened to {self._longest} seconds")
            seconds = spec["expirationSeconds"] = self._longest
        lives, warn_after = self._extended(seconds, audiences, bound)
        issued = self._issuer.issue(account, audiences, lives, warn_after, bound, now=now // 1_000_000)
        until = format_time_seconds(now + seconds * 1_000_000)
        status = {"token": issued.token, "expirationTimestamp": until}
        fields = {**request, "metadata": metadata, "spec": spec, "status": status}
        return TokenAnswer(fields, warnings, credential_id(issued.id))

    def _extended(self, seconds: int, audiences: Sequence[str], bound: Bound) -> tuple[int, int]:
        """Return a token's lifetime in seconds, and the seconds after which its uses are recorded (0 means never)."""
        is_ours = set(audiences) <= set(self._issuer.audiences)
        if self._extends and bound.pod is not None and seconds == WARN_AFTER and is_ours:
            return EXTENDED, WARN_AFTER
        return seconds, 0

    def _bound(self, account: Object, reference: dict[str, Any] | None) -> Bound:
        if reference is None:
            return Bound()
        kind, name, uid = (reference.get(field, "") for field in ("kind", "name", "uid"))
        group, version = _group_version(reference.get("apiVersion", ""))
        resource = None if group else _BINDABLE.get(kind)
        if resource is None:
            raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        obj = self._found(resource, "" if resource == NODES else account.namespace, name)
        if resource == PODS and obj.view(_Pod).spec.service_account_name != account.name:
            words = f"cannot bind token for serviceaccount {quote(account.name)} to pod running with different "
            raise BadRequest(f"{words}serviceaccount name.")
        if uid and uid != obj.uid:
            detail = f"the UID in the bound object reference ({uid}) does not match the UID in record. "
            raise conflict(Resource("", kind), name, f"{detail}The object might have been deleted and then recreated")
        itself = Reference(obj.name, obj.uid)
        if resource == PODS:
            return Bound(pod=itself, node=self._node_of(obj))
        return Bound(secret=itself) if resource == SECRETS else Bound(node=itself)

    def _found(self, resource: Resource, namespace: str, name: str) -> Object:
        if not name:
            raise BadRequest("Name parameter required.")
        obj = self._find(resource, Key(namespace, name))
        if obj is None:
            raise not_found(resource, name)
        return obj

    def _node_of(self, pod: Object) -> Reference | None:
        """Return the node of a pod; if the node does not exist, the returned node has no uid."""
        name = pod.view(_Pod).spec.node_name
        if not name:
            return None
        node = self._find(NODES, Key("", name))
        return Reference(name, node.uid if node is not None else "")


def _group_version(api_version: str) -> tuple[str, str]:
    """Parse an apiVersion as apimachinery's `FromAPIVersionAndKind` does; an invalid apiVersion gives empty strings."""
    parts = api_version.split("/")
    match parts:
        case [version]:
            return "", version
        case [group, version]:
            return group, version
    return "", ""


def _errors(seconds: int) -> list[FieldError]:
    field = "spec.expirationSeconds"
    if seconds < _SHORTEST:
        return [invalid(field, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST:
        return [invalid(field, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []

"""Tokens of service accounts: signed, short-lived, and good for nothing once what they are bound to is gone.

Guarantees:
- A token is a JWT signed with ECDSA on P-256 (ES256) by this server's key; no other algorithm is ever accepted, and
  nothing in a token's header chooses a key.
- It names the account's uid, and that of the pod, secret or node it was bound to: an account deleted and created again
  is another one, and an old token is nobody's.

Claims are those of Kubernetes' bound tokens (`pkg/serviceaccount/claims.go`), so that clients which look into their own
token find what they look for.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError
from ctrlmgr.server.http.tls import write_private

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""Who signs, and the audience that this API is (kube-apiserver's --service-account-issuer, --api-audiences)."""

SERVICE_ACCOUNTS = Resource("", "serviceaccounts")

_BINDABLE = {"Pod": Resource("", "pods"), "Secret": Resource("", "secrets"), "Node": Resource("", "nodes")}
_HEADER = {"alg": "ES256", "typ": "JWT"}
_PREFIX = "system:serviceaccount:"
_GROUP = "system:serviceaccounts"
_SHAPE = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_REMEMBERED = 1024
_SIDE = 32
"""Bytes of each half of a signature."""

Find = Callable[[Resource, Key], Object | None]
"""Looks up what there is now."""


class Bound(NamedTuple):
    """What a token is bound to besides its account."""

    kind: str
    """`Pod`, `Secret` or `Node`."""
    name: str
    uid: str


class TokenIssuer(Protocol):
    """Makes tokens."""

    def issue(self, account: Object, audiences: Sequence[str], seconds: int, bound: Bound | None) -> tuple[str, int]:
        """Return a token for a service account and when it expires (seconds since 1970)."""


class _Reference(msgspec.Struct, omit_defaults=True):
    name: str = ""
    uid: str = ""


class _Kubernetes(msgspec.Struct, omit_defaults=True):
    namespace: str
    serviceaccount: _Reference
    pod: _Reference | None = None
    secret: _Reference | None = None
    node: _Reference | None = None


class _Claims(msgspec.Struct):
    aud: list[str]
    exp: int
    iat: int
    iss: str
    kubernetes: _Kubernetes = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


_decode = msgspec.json.Decoder(_Claims).decode


class ServiceAccountTokens:
    """Issues tokens and knows them again: a `TokenIssuer`, and an `auth.TokenSource`."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, find: Find, *, clock: Clock) -> None:
        """Sign with `key`; `find` says whether what a token is bound to is still there."""
        self._key = key
        self._public = key.public_key()
        self._find = find
        self._clock = clock
        self._verified: dict[bytes, _Claims] = {}  # by digest: a signature need not be checked twice

    def issue(self, account: Object, audiences: Sequence[str], seconds: int, bound: Bound | None) -> tuple[str, int]:
        """Return a token for a service account and when it expires (seconds since 1970)."""
        now = self._now()
        references = {bound.kind.lower(): _Reference(bound.name, bound.uid)} if bound is not None else {}
        claims = _Claims(
            aud=list(audiences) or [ISSUER],
            exp=now + seconds,
            iat=now,
            iss=ISSUER,
            kubernetes=_Kubernetes(account.namespace, _Reference(account.name, account.uid), **references),
            nbf=now,
            sub=f"{_PREFIX}{account.namespace}:{account.name}",
        )
        signed = f"{_encoded(msgspec.json.encode(_HEADER))}.{_encoded(msgspec.json.encode(claims))}"
        return f"{signed}.{_encoded(self._sign(signed.encode()))}", claims.exp

    def user(self, token: str) -> User | None:
        """Return whom a token stands for here and now, None if it is not ours or no longer good."""
        claims = self._claims(token)
        if claims is None or claims.iss != ISSUER or ISSUER not in claims.aud:
            return None
        if not claims.nbf <= self._now() < claims.exp or not self._is_bound(claims.kubernetes):
            return None
        about = claims.kubernetes
        account = about.serviceaccount
        name = f"{_PREFIX}{about.namespace}:{account.name}"
        return User(name, account.uid, (_GROUP, f"{_GROUP}:{about.namespace}"), _extra(about))

    def _claims(self, token: str) -> _Claims | None:
        if not _SHAPE.fullmatch(token):
            return None
        digest = sha256(token.encode()).digest()
        claims = self._verified.get(digest)
        if claims is None:
            claims = self._verify(token)
            if claims is not None:
                if len(self._verified) >= _REMEMBERED:
                    self._verified.clear()
                self._verified[digest] = claims
        return claims

    def _verify(self, token: str) -> _Claims | None:
        signed, _, signature = token.rpartition(".")
        header, _, payload = signed.partition(".")
        try:
            if msgspec.json.decode(_decoded(header)).get("alg") != _HEADER["alg"]:
                return None
            halves = _decoded(signature)
            if len(halves) != 2 * _SIDE:
                return None
            r, s = int.from_bytes(halves[:_SIDE], "big"), int.from_bytes(halves[_SIDE:], "big")
            self._public.verify(encode_dss_signature(r, s), signed.encode(), ec.ECDSA(hashes.SHA256()))
            return _decode(_decoded(payload))
        except (binascii.Error, msgspec.MsgspecError, AttributeError, InvalidSignature):
            return None

    def _sign(self, data: bytes) -> bytes:
        r, s = decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(_SIDE, "big") + s.to_bytes(_SIDE, "big")

    def _is_bound(self, about: _Kubernetes) -> bool:
        """Whether the account, and what else the token is bound to, is still what it was."""
        there = [self._is(SERVICE_ACCOUNTS, about.namespace, about.serviceaccount)]
        for kind, reference in (("Pod", about.pod), ("Secret", about.secret), ("Node", about.node)):
            if reference is not None:
                there.append(self._is(_BINDABLE[kind], "" if kind == "Node" else about.namespace, reference))
        return all(there)

    def _is(self, resource: Resource, namespace: str, reference: _Reference) -> bool:
        obj = self._find(resource, Key(namespace, reference.name))
        return obj is not None and obj.uid == reference.uid

    def _now(self) -> int:
        return self._clock.now() // 1_000_000


def bindable(kind: str) -> Resource | None:
    """Return the resource of a kind that tokens can be bound to, None if they cannot."""
    return _BINDABLE.get(kind)


def service_account_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key at `path` (PEM), made if there is none; raises `SettingsError` when that cannot be done."""
    try:
        if path.exists():
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
            if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.key_size != 8 * _SIDE:
                raise ValueError("it is not a key on the curve P-256")
            return key
        key = ec.generate_private_key(ec.SECP256R1())
        pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        write_private(path, key.private_bytes(*pem))
    except (OSError, ValueError) as error:
        raise SettingsError(f"data_dir: {path} cannot be used: {error}") from error
    return key


def _extra(about: _Kubernetes) -> dict[str, tuple[str, ...]]:
    """Return what else Kubernetes says of the user, for those who decide by it."""
    prefix = "authentication.kubernetes.io"
    references = {"pod": about.pod, "node": about.node}
    extra: dict[str, tuple[str, ...]] = {}
    for kind, reference in references.items():
        if reference is not None:
            extra[f"{prefix}/{kind}-name"] = (reference.name,)
            extra[f"{prefix}/{kind}-uid"] = (reference.uid,)
    return extra


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> Any:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))

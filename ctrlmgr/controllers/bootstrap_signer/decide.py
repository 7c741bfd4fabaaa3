"""Decides the signatures of `cluster-info`.

Guarantees: `cluster-info` has one signature for each valid token that may sign, and no other signatures. A signature is
a JWS without its content (HS256, RFC 7515 appendix F). The key of a signature is the secret of the token, and the name
of the signature contains the token's id.

Source: `pkg/controller/bootstrap/bootstrapsigner.go`, cluster-bootstrap `token/jws/jws.go`.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.authentication import jwt
from ctrlmgr.authentication.bootstrap_tokens import USED_FOR_SIGNING, has_expired, is_token, texts, token_id_of

NAMESPACE: Final = "kube-public"
NAME: Final = "cluster-info"
CONTENT: Final = "kubeconfig"
PREFIX: Final = "jws-kubeconfig-"


class _ConfigMap(msgspec.Struct, frozen=True, gc=False):
    data: dict[str, str] | None = None


def detached_signature(content: str, token_id: str, token_secret: str) -> str:
    """Sign `content` with a token, and return the JWS; the JWS does not include `content`."""
    header = jwt.encoded(msgspec.json.encode({"alg": "HS256", "kid": token_id}))
    signed = f"{header}.{jwt.encoded(content.encode())}"
    return f"{header}..{jwt.encoded(hmac.digest(token_secret.encode(), signed.encode(), sha256))}"


def signing_tokens(secrets: Iterable[Object], now: int) -> dict[str, str]:
    """Return the secrets of the tokens that may sign at the time `now` (microseconds since 1970), by token id."""
    found: dict[str, str] = {}
    for secret in secrets:
        token_id = token_id_of(secret.name)
        data = texts(secret) if token_id and is_token(secret) else {}
        is_whole = data.get("token-id") == token_id and data.get("token-secret")
        if data and is_whole and data.get(USED_FOR_SIGNING) == "true" and not has_expired(data, now):
            found[token_id] = data["token-secret"]
    return found


def desired_cluster_info(info: Object, tokens: Mapping[str, str]) -> Object | None:
    """Return `info` with the desired signatures; None if `info` already has them or has no content to sign."""
    data = info.view(_ConfigMap).data or {}
    content = data.get(CONTENT)
    if content is None:
        return None
    kept = {name: value for name, value in data.items() if not name.startswith(PREFIX)}
    signed = {PREFIX + each: detached_signature(content, each, secret) for each, secret in tokens.items()}
    desired = {**kept, **signed}
    return None if desired == data else Object.from_dict({**info.to_dict(), "data": desired})

"""Decides the content of a ServiceAccount's token Secret.

Guarantees: an existing token is kept, even if another program created it. The CA certificate is corrected, a missing
namespace is added, and annotations contain the name and uid of the ServiceAccount.

Source: `pkg/controller/serviceaccount/tokens_controller.go`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.authentication.jwt import PrivateKey, sign
from ctrlmgr.authentication.legacy_claims import ACCOUNT_NAME, ACCOUNT_UID, legacy_claims, secret_data
from ctrlmgr.authentication.token_keys import key_id

NewToken: TypeAlias = Callable[[Object, str], str]
"""The type of a function that returns a token of a ServiceAccount, given the name of the Secret."""


def token_maker(key: PrivateKey) -> NewToken:
    """Return a function that issues ServiceAccount tokens, signed with `key`."""
    name = key_id(key.public_key())
    return lambda account, secret: sign(msgspec.json.encode(legacy_claims(account, secret)), key, name)


def desired_secret(secret: Object, account: Object, root_ca: bytes, new_token: NewToken) -> Object | None:
    """Return `secret` with the token of `account` and other missing data; None if no data is missing."""
    data = secret_data(secret)
    added: dict[str, bytes] = {}
    if root_ca and data.get("ca.crt") != root_ca:
        added["ca.crt"] = root_ca
    if not data.get("namespace"):
        added["namespace"] = secret.namespace.encode()
    if not data.get("token"):
        added["token"] = new_token(account, secret.name).encode()
    if not added:
        return None
    fields = secret.to_dict()
    fields["data"] = {
        **(fields.get("data") or {}),
        **{name: b64encode(value).decode() for name, value in added.items()},
    }
    owner = {ACCOUNT_NAME: account.name, ACCOUNT_UID: account.uid}
    metadata = fields["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **owner}
    return Object.from_dict(fields)


def without_reference(account: Object, secret: str) -> Object | None:
    """Return `account` without `secret` in its list of Secrets; None if the list does not contain `secret`."""
    fields = account.to_dict()
    references: list[dict[str, Any]] = fields.get("secrets") or []
    left = [each for each in references if each.get("name") != secret]
    if len(left) == len(references):
        return None
    return Object.from_dict({**fields, "secrets": left})

"""Decides which auto-generated tokens are invalidated or deleted because they were not used.

Guarantees: only auto-generated tokens, which are listed in their ServiceAccounts, are invalidated or deleted. An unused
token is first marked as invalid. After another period without use, the token is deleted. A token is kept if it was
used, if a pod mounts the token, or if the use of tokens was not tracked for long enough.

Source: `pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go`, KEP-2799.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.authentication.legacy_claims import INVALID_SINCE, LAST_USED, is_token_of, referenced_secrets
from ctrlmgr.clock import parse_time

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class TokenAction(Enum):
    """The action for a token in a Secret."""

    KEPT = "kept"
    INVALIDATED = "invalidated"
    REMOVED = "removed"


class _SecretSource(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    secret_name: str = ""


class _Volume(msgspec.Struct, frozen=True, gc=False):
    secret: _SecretSource | None = None


class _PodSpec(msgspec.Struct, frozen=True, gc=False):
    volumes: list[_Volume] | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    spec: _PodSpec = _PodSpec()


def day(moment: int) -> str:
    """Return the day (UTC) that contains a time, given in microseconds since 1970."""
    return datetime.fromtimestamp(moment // 1_000_000, UTC).strftime("%Y-%m-%d")


def is_day(text: str) -> bool:
    """Return whether `text` is a valid day in the format of the labels."""
    if not _DAY.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def mounted_secrets(pods: Iterable[Object]) -> set[tuple[str, str]]:
    """Return the namespaces and names of the Secrets that pods mount."""
    return {
        (pod.namespace, volume.secret.secret_name)
        for pod in pods
        for volume in pod.view(_Pod).spec.volumes or ()
        if volume.secret is not None
    }


def fate(
    secret: Object, account: Object | None, mounted: Collection[tuple[str, str]], *, now: int, period: float
) -> TokenAction:
    """Return the action for the token in `secret` at `now` (microseconds since 1970).

    `period` is the maximum time, in seconds, for which a token may be unused.
    """
    cutoff = now - round(period * 1_000_000)
    created = secret.metadata.creation_timestamp
    if created is None or parse_time(created) > cutoff or secret.is_terminating:
        return TokenAction.KEPT
    used = secret.labels.get(LAST_USED)
    if used is not None and (not is_day(used) or used >= day(cutoff)):
        return TokenAction.KEPT
    if account is None or not is_token_of(secret, account) or secret.name not in referenced_secrets(account):
        return TokenAction.KEPT
    if (secret.namespace, secret.name) in mounted:
        return TokenAction.KEPT
    invalid_since = secret.labels.get(INVALID_SINCE, "")
    if not is_day(invalid_since):
        return TokenAction.INVALIDATED
    return TokenAction.KEPT if invalid_since >= day(cutoff) else TokenAction.REMOVED


def invalidation(secret: Object, now: int) -> dict[str, Any]:
    """Return the patch that marks `secret` as invalid from today on; the patch fails if the Secret has changed."""
    metadata = {"uid": secret.uid, "resourceVersion": str(secret.revision), "labels": {INVALID_SINCE: day(now)}}
    return {"metadata": metadata}

"""Which tokens in Secrets have gone out of use.

Guarantees: only a token that its account lists was made unasked, and only such a one is ever retired: first marked as
invalid, and after as long again removed. One that was used, that a pod mounts, or of which the use is not known for
long enough is left alone.

Rules: `pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go`, KEP-2799.
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


class Fate(Enum):
    """What becomes of a token."""

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
    """Return the day (UTC) of a moment in microseconds since 1970."""
    return datetime.fromtimestamp(moment // 1_000_000, UTC).strftime("%Y-%m-%d")


def is_day(text: str) -> bool:
    """Say whether `text` is a day as labels have it."""
    if not _DAY.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def mounted_secrets(pods: Iterable[Object]) -> set[tuple[str, str]]:
    """Return the Secrets that pods mount, by namespace and name."""
    return {
        (pod.namespace, volume.secret.secret_name)
        for pod in pods
        for volume in pod.view(_Pod).spec.volumes or ()
        if volume.secret is not None
    }


def fate(
    secret: Object, account: Object | None, mounted: Collection[tuple[str, str]], *, now: int, period: float
) -> Fate:
    """Return what becomes of the token in `secret` at `now` (microseconds since 1970).

    `period` is how long (seconds) it may go unused.
    """
    cutoff = now - round(period * 1_000_000)
    created = secret.metadata.creation_timestamp
    if created is None or parse_time(created) > cutoff or secret.is_terminating:
        return Fate.KEPT
    used = secret.labels.get(LAST_USED)
    if used is not None and (not is_day(used) or used >= day(cutoff)):
        return Fate.KEPT
    if account is None or not is_token_of(secret, account) or secret.name not in referenced_secrets(account):
        return Fate.KEPT
    if (secret.namespace, secret.name) in mounted:
        return Fate.KEPT
    invalid_since = secret.labels.get(INVALID_SINCE, "")
    if not is_day(invalid_since):
        return Fate.INVALIDATED
    return Fate.KEPT if invalid_since >= day(cutoff) else Fate.REMOVED


def invalidation(secret: Object, now: int) -> dict[str, Any]:
    """Return the patch that marks `secret`, as it is now, as invalid from today on."""
    metadata = {"uid": secret.uid, "resourceVersion": str(secret.revision), "labels": {INVALID_SINCE: day(now)}}
    return {"metadata": metadata}

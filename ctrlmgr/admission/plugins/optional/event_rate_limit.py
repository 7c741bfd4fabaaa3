"""EventRateLimit: limits the rate at which Events are written.

Guarantees: each limit has token buckets that fill at a constant rate. An Event takes one token from a bucket of each
limit that applies, even if another limit refuses the Event. At most `cacheSize` buckets are kept; the least recently
used buckets are evicted.

Rules come from Kubernetes' `plugin/pkg/admission/eventratelimit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, ClassVar, Final

import msgspec

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import Clock
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.errors import SettingsError, TooManyRequests
from ctrlmgr.settings.configuration_files import Document

EVENTS: Final = (Resource("", "events"), Resource("events.k8s.io", "events"))

_VERSIONS: Final = ("eventratelimit.admission.k8s.io/v1alpha1",)
_ENTRIES: Final = 4096
_LONGEST: Final = 1024
"""The maximum length of a bucket's key, in characters.

A longer key is replaced by its digest, because the key contains the Event's source, which clients choose.
"""
_INVOLVED: Final = ("kind", "namespace", "name", "uid", "apiVersion")


def _source_and_object(attributes: Attributes) -> str:
    event = attributes.fields
    source: Mapping[str, Any] = event.get("source") or {}
    involved: Mapping[str, Any] = event.get("involvedObject") or {}
    parts = [source.get("component"), source.get("host"), *(involved.get(field) for field in _INVOLVED)]
    return "".join(part or "" for part in parts)


_KEYS: Final[Mapping[str, Callable[[Attributes], str]]] = {
    "Server": lambda attributes: "",
    "Namespace": lambda attributes: attributes.namespace,
    "User": lambda attributes: attributes.requester.user,
    "SourceAndObject": _source_and_object,
}
"""Functions that return the key of an Event's bucket, by type of limit."""


class _Limit(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    qps: int
    burst: int
    cache_size: int = msgspec.field(default=0, name="cacheSize")


class _Configuration(msgspec.Struct, forbid_unknown_fields=True):
    limits: list[_Limit] = []


class _Bucket:
    def __init__(self, limit: _Limit, now: float) -> None:
        self._limit = limit
        self._tokens = float(limit.burst)
        self._filled_at = now

    def take(self, now: float) -> bool:
        """Take a token from the bucket; return whether a token was available."""
        self._tokens = min(self._limit.burst, self._tokens + (now - self._filled_at) * self._limit.qps)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class _Enforcer:
    """One rate limit of the plugin, with its token buckets."""

    def __init__(self, limit: _Limit, clock: Clock) -> None:
        self._limit = limit
        self._key = _KEYS[limit.type]
        self._clock = clock
        self._buckets: BoundedCache[str | bytes, _Bucket] = BoundedCache(
            "event-rate-limit", entries=limit.cache_size or _ENTRIES
        )

    def problem(self, attributes: Attributes) -> str:
        """Take a token for an Event; return an error message if the bucket is empty, otherwise an empty string."""
        key, now = self._key(attributes), self._clock.monotonic()
        short = key if len(key) <= _LONGEST else sha256(key.encode("utf-8", "surrogatepass")).digest()
        bucket = self._buckets.get(short)
        if bucket is None:
            bucket = _Bucket(self._limit, now)
            self._buckets.put(short, bucket)
        return "" if bucket.take(now) else f"limit reached on type {self._limit.type} for key {key}"


class EventRateLimit(Plugin):
    """Refuses Events that exceed one of the limits."""

    name: ClassVar[str] = "EventRateLimit"

    def __init__(self, document: Document | None, clock: Clock) -> None:
        """Read the limits from `document`; raises `SettingsError` if they are invalid or if `document` is None."""
        if document is None:
            raise SettingsError("EventRateLimit has no limits: --admission-control-config-file must configure it")
        limits = document.read("Configuration", _VERSIONS, _Configuration).limits
        if not limits:
            raise document.refuse("there must be at least one limit", "limits")
        for index, limit in enumerate(limits):
            if limit.type not in _KEYS:
                raise document.refuse(f"type must be one of {', '.join(_KEYS)}", "limits", index, "type")
            for field, value, least in (
                ("qps", limit.qps, 1),
                ("burst", limit.burst, 1),
                ("cacheSize", limit.cache_size, 0),
            ):
                if value < least:
                    raise document.refuse(f"{field} must be at least {least}", "limits", index, field)
        self._enforcers = [_Enforcer(limit, clock) for limit in limits]

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations and updates of Events."""
        return resource in EVENTS and not subresource and operation in (Verb.CREATE, Verb.UPDATE)

    def validate(self, attributes: Attributes) -> None:
        """Raise `TooManyRequests` if an Event exceeds a limit."""
        if attributes.dry_run:
            return
        problems = [each for each in (enforcer.problem(attributes) for enforcer in self._enforcers) if each]
        if problems:
            distinct = list(dict.fromkeys(problems))
            message = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
            raise TooManyRequests(message)

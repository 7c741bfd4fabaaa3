"""Encodes each audit event as one line of JSON: an `Event` of audit.k8s.io/v1, in Kubernetes' field order.

Source: apiserver `pkg/apis/audit/v1/types.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from ctrlmgr.audit.policy import Stage
from ctrlmgr.audit.request_record import Record
from ctrlmgr.authentication.user import User
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import format_time

_TRUNCATED: Final = {"audit.k8s.io/truncated": "true"}
_CODES = 64
"""The maximum number of encoded response statuses that are cached."""
_USERS: Final = BoundedCache[tuple[str, str, tuple[str, ...]], msgspec.Raw](
    "audit-users", entries=256, size=1024 * 1024
)
"""A cache of encoded users, by name, uid and groups."""

_NO_ONE: Final = msgspec.Raw(b"{}")
# names at module level, because looking up an enum member is a function call in Python 3.11
_RECEIVED: Final = Stage.REQUEST_RECEIVED
_STAGES: Final = {stage: str(stage) for stage in Stage}
"""The names of audit stages as plain strings, which msgspec encodes faster."""


class _User(msgspec.Struct, omit_defaults=True, gc=False):
    """The encoded form of a `User`."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class _Constraint(msgspec.Struct, rename="camel"):
    impersonation_constraint: str


class Reference(msgspec.Struct, omit_defaults=True, rename="camel", gc=False):
    """A reference to the object of a request (audit.k8s.io ObjectReference)."""

    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""
    api_version: str = ""
    resource_version: str = ""
    subresource: str = ""


class _Status(msgspec.Struct, omit_defaults=True, gc=False):
    metadata: msgspec.Raw
    status: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None
    code: int = 0


class Event(msgspec.Struct, omit_defaults=True, rename="camel", gc=False):
    """The audit event of a request at one stage (audit.k8s.io Event)."""

    kind: str
    api_version: str
    level: str
    audit_id: str = msgspec.field(name="auditID")
    stage: str
    request_uri: str = msgspec.field(name="requestURI")
    verb: str
    user: _User | msgspec.Raw
    impersonated_user: _User | None = None
    authentication_metadata: _Constraint | None = None
    source_ips: Sequence[str] = msgspec.field(default=(), name="sourceIPs")
    user_agent: str = ""
    object_ref: Reference | None = None
    response_status: _Status | msgspec.Raw | None = None
    request_object: msgspec.Raw | None = None
    response_object: msgspec.Raw | None = None
    request_received_timestamp: str = ""
    stage_timestamp: str = ""
    annotations: Mapping[str, str] = {}


_encoder = msgspec.json.Encoder()
_encode, encode_lines = _encoder.encode, _encoder.encode_lines


def line(record: Record, stage: Stage, now: int, *, truncated: bool = False) -> bytes:
    """Return the line of JSON for a request at a stage that the request reached at `now` (microseconds since 1970).

    If `truncated` is set, the line contains no bodies, and an annotation marks the event as truncated.
    """
    return _encode(event_of(record, stage, now, truncated=truncated)) + b"\n"


def event_of(record: Record, stage: Stage, now: int, *, truncated: bool = False) -> Event:
    """Return the event that `line` encodes; `encode_lines` encodes several events."""
    attributes, head, user, other = record.attributes, record.head, record.user, record.impersonated
    is_answered = stage is not _RECEIVED
    has_bodies = is_answered and not truncated
    return Event(
        "Event",
        "audit.k8s.io/v1",
        record.handling.level.called,
        head.id,
        _STAGES[stage],
        head.uri,
        attributes.verb,
        _sender(user),
        None if other is None else _User(*other),
        _Constraint(record.constraint) if record.constraint else None,
        head.sources,
        head.agent,
        reference(record) if attributes.is_resource else None,
        _response_status(record) if is_answered else None,
        record.request_object if has_bodies else None,
        record.response_object if has_bodies else None,
        format_time(record.received),
        format_time(now),
        {**record.annotations, **_TRUNCATED} if truncated else record.annotations,
    )


def reference(record: Record) -> Reference:
    """Return a reference to the request's object; fields whose values the server does not know are empty."""
    _, _, group, version, resource, part, namespace, name, _, _, _ = record.attributes
    recorded = record.told_object
    if recorded is None:
        return Reference(resource, namespace, name, "", group, version, "", part)
    return Reference(
        resource,
        namespace or recorded.namespace,
        name or recorded.name,
        recorded.uid,
        group,
        version,
        recorded.resource_version,
        part,
    )


def _response_status(record: Record) -> _Status | msgspec.Raw:
    found = record.status
    if found is None:
        return _code(record.code)
    return _Status(_NO_ONE, found.status, found.message, found.reason, found.details, record.code)


def _sender(user: User | None) -> _User | msgspec.Raw:
    if user is None:
        return _NO_ONE
    return _User(*user) if user.extra else _plain(user.name, user.uid, user.groups)


def _plain(name: str, uid: str, groups: tuple[str, ...]) -> msgspec.Raw:
    written = _USERS.get((name, uid, groups))
    if written is None:
        written = msgspec.Raw(_encode(_User(name, uid, groups)))
        _USERS.put((name, uid, groups), written, 2 * len(bytes(written)))
    return written


@lru_cache(_CODES)
def _code(code: int) -> msgspec.Raw:
    return msgspec.Raw(_encode(_Status(_NO_ONE, code=code)))

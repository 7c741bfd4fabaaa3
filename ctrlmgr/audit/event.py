"""One request on its way through the server, as the audit log tells of it.

Guarantees:
- What is written down is an `Event` of audit.k8s.io/v1, in Kubernetes' field order, on one line of JSON.
- Of objects no more is kept than the level asks for, and Secrets' contents only where a policy says so.
- A request that is not audited never has a `Record`.

Rules: apiserver `pkg/audit/request.go`, `pkg/apis/audit/v1/types.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.audit.policy import Handling, Level, Stage
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Verdict
from ctrlmgr.clock import format_time

DECISION: Final = "authorization.k8s.io/decision"
REASON: Final = "authorization.k8s.io/reason"
_UNDECIDED: Final = "internal error"
"""The annotations that say whether a request was allowed, and why."""

_TRUNCATED: Final = {"audit.k8s.io/truncated": "true"}

DEPRECATED: Final = "k8s.io/deprecated"
"""The annotation of a request to a version that is going."""

_AGENT = 1024
"""Characters of a User-Agent that are kept."""
_NAMES = {Level.METADATA: "Metadata", Level.REQUEST: "Request", Level.REQUEST_RESPONSE: "RequestResponse"}
_IS_STATUS = b'{"kind":"Status",'
_NO_METADATA: Mapping[str, Any] = {}


class _Status(msgspec.Struct, frozen=True):
    metadata: Mapping[str, Any] = _NO_METADATA
    status: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None
    code: int = 0


class _Named(NamedTuple):
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


_read_status = msgspec.json.Decoder(_Status).decode
_encode = msgspec.json.Encoder().encode
_read_anything = msgspec.json.Decoder().decode


class Record:
    """What is known of one request; used on one thread."""

    __slots__ = (
        "agent",
        "annotations",
        "attributes",
        "code",
        "constraint",
        "handling",
        "id",
        "impersonated",
        "lasts",
        "panicked",
        "received",
        "request_object",
        "response_object",
        "revision",
        "sources",
        "started",
        "status",
        "told_object",
        "uri",
        "user",
    )

    def __init__(
        self,
        handling: Handling,
        attributes: Attributes,
        user: User | None,
        *,
        id: str,
        uri: str,
        agent: str,
        sources: Sequence[str],
        received: int,
        lasts: bool = False,
        started: Callable[[Record], None] | None = None,
    ) -> None:
        """Tell of a request by `user` (None: it is not known whose) that came at `received` (microseconds since 1970).

        One whose answer `lasts` is told of by `started` when its answer begins.
        """
        self.handling = handling
        self.attributes = attributes
        self.user = user
        self.id = id
        self.uri = uri
        self.agent = agent if len(agent) <= _AGENT else f"{agent[:_AGENT]}...TRUNCATED"
        self.sources = sources
        self.received = received
        self.lasts = lasts
        self.panicked = False
        """Whether the server did not know how to go on."""
        self.started = started
        self.impersonated: User | None = None
        self.constraint = ""
        """The verb of the constrained mode in which that was allowed, if it was."""
        self.annotations: dict[str, str] = {}
        self.code = 0
        """The status of the answer, once there is one."""
        self.status: _Status | None = None
        self.request_object: bytes | None = None
        self.response_object: bytes | None = None
        self.told_object: _Named | None = None
        """What the body says of which object is meant, where the path does not."""
        self.revision = 0
        """The revision that the request wrote, as far as that is known."""

    @property
    def level(self) -> str:
        """How much is written down, as policies call it."""
        return _NAMES[self.handling.level]

    @property
    def name(self) -> str:
        """The name of the object that is meant, empty for none."""
        return self.attributes.name or (self.told_object.name if self.told_object is not None else "")

    @property
    def wants_request(self) -> bool:
        """Whether the body of the request is to be kept."""
        return self.handling.level >= Level.REQUEST

    @property
    def wants_response(self) -> bool:
        """Whether the body of the answer is to be kept."""
        return self.handling.level >= Level.REQUEST_RESPONSE

    def decide(self, verdict: Verdict) -> None:
        """Note whether it may be made, and why; of what could not be found out no more than that."""
        if verdict.error and not verdict.allows:
            self.annotations[REASON] = _UNDECIDED
            return
        self.annotations[DECISION] = "allow" if verdict.allows else "forbid"
        self.annotations[REASON] = verdict.reason

    def named(self, fields: Mapping[str, Any]) -> None:
        """Note which object a decoded body is about, if it says so."""
        told = fields.get("metadata") or {}
        parts = (told.get("namespace"), told.get("name"), told.get("uid"), told.get("resourceVersion"))
        self.told_object = _Named(*(part or "" for part in parts))

    def asked(self, body: bytes) -> None:
        """Keep the body of the request, which is JSON, as far as it is wanted."""
        if self.wants_request:
            self.request_object = self._kept(body)

    def answered(self, code: int, body: bytes) -> None:
        """Keep an answer, which is JSON, as far as it is wanted; it has not been sent yet."""
        self.code = code
        if body.startswith(_IS_STATUS):
            self.status = _read_status(body)
        if self.wants_response:
            self.response_object = self._kept(body)

    def begun(self, code: int) -> None:
        """Note that the answer begins to be sent."""
        self.code = code
        if self.lasts and self.started is not None:
            self.started(self)

    def line(self, stage: Stage, now: int, *, truncated: bool = False) -> bytes:
        """Return what the log says of it at a stage, as one line of JSON.

        If it is `truncated` the bodies are not in it, and it says so.
        """
        complete = stage is not Stage.REQUEST_RECEIVED
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": self.level,
            "auditID": self.id,
            "stage": stage,
            "requestURI": self.uri,
            "verb": self.attributes.verb,
            "user": _user(self.user) if self.user is not None else {},
        }
        if self.impersonated is not None:
            event["impersonatedUser"] = _user(self.impersonated)
        if self.constraint:
            event["authenticationMetadata"] = {"impersonationConstraint": self.constraint}
        if self.sources:
            event["sourceIPs"] = self.sources
        if self.agent:
            event["userAgent"] = self.agent
        if self.attributes.is_resource:
            event["objectRef"] = self.reference()
        if complete:
            event["responseStatus"] = self._response_status()
            if self.request_object is not None and not truncated:
                event["requestObject"] = msgspec.Raw(self.request_object)
            if self.response_object is not None and not truncated:
                event["responseObject"] = msgspec.Raw(self.response_object)
        event["requestReceivedTimestamp"] = format_time(self.received)
        event["stageTimestamp"] = format_time(now)
        if annotations := {**self.annotations, **_TRUNCATED} if truncated else self.annotations:
            event["annotations"] = annotations
        return _encode(event) + b"\n"

    def _kept(self, body: bytes) -> bytes | None:
        """Return JSON on one line, without managed fields if the policy says so; None for what is no JSON."""
        try:
            if self.handling.without_managed_fields and b'"managedFields"' in body:
                return _encode(_without_managed_fields(_read_anything(body)))
            return msgspec.json.format(body, indent=-1)
        except (ValueError, msgspec.MsgspecError):
            return None

    def reference(self) -> dict[str, str]:
        """Return which object is meant, as far as that is known."""
        asked, told = self.attributes, self.told_object or _Named()
        parts = {
            "resource": asked.resource,
            "namespace": asked.namespace or told.namespace,
            "name": asked.name or told.name,
            "uid": told.uid,
            "apiGroup": asked.group,
            "apiVersion": asked.version,
            "resourceVersion": told.resource_version,
            "subresource": asked.subresource,
        }
        return {name: value for name, value in parts.items() if value}

    def _response_status(self) -> dict[str, Any]:
        found = self.status
        if found is None:
            return {"metadata": _NO_METADATA, "code": self.code}
        told: dict[str, Any] = {"status": found.status, "message": found.message, "reason": found.reason}
        status = {"metadata": _NO_METADATA, **{name: text for name, text in told.items() if text}}
        if found.details is not None:
            status["details"] = found.details
        return {**status, "code": self.code}


def _user(user: User) -> dict[str, Any]:
    parts: dict[str, Any] = {"username": user.name}
    if user.uid:
        parts["uid"] = user.uid
    if user.groups:
        parts["groups"] = user.groups
    if user.extra:
        parts["extra"] = user.extra
    return parts


def _without_managed_fields(fields: Any) -> Any:
    """Drop who owns what of an object, or of each object of a list."""
    if isinstance(fields, dict):
        for each in (fields, *(fields.get("items") or ())):
            if isinstance(each, dict) and isinstance(metadata := each.get("metadata"), dict):
                metadata.pop("managedFields", None)
    return fields

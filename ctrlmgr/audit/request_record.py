"""Collects the facts about one request that the audit log needs, while the server handles the request.

Guarantees:
- Bodies are kept only if the audit level requires them, and the content of Secrets is kept only if the policy
  explicitly requires it.
- A request that is not audited has no `Record`.
- A `Record` stores only facts that the server does not keep elsewhere; all other facts are computed when the audit
  event is encoded.

Source: apiserver `pkg/audit/request.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ctrlmgr.audit.policy import AuditDecision
from ctrlmgr.audit.sources import sources
from ctrlmgr.authentication.header_lines import HeaderLine, HeaderLines, by_name
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Verdict

DECISION: Final = "authorization.k8s.io/decision"
REASON: Final = "authorization.k8s.io/reason"
"""The annotations that contain the authorization decision and its reason."""
_UNDECIDED: Final = "internal error"

DEPRECATED: Final = "k8s.io/deprecated"
"""The annotation for requests to a deprecated API version."""

_AGENT = 1024
"""The maximum number of recorded characters of a User-Agent header."""
_VERDICTS = 1024
"""The maximum number of verdicts whose annotations are cached; most requests have one of a few verdicts."""
_IS_STATUS = b'{"kind":"Status",'
_NO_METADATA: Mapping[str, Any] = {}
_NOTHING: Mapping[str, str] = {}


class ReceivedRequest(Protocol):
    """A request in the form in which the server received the request."""

    @property
    def id(self) -> bytes:
        """The audit id of the request."""

    @property
    def uri(self) -> str:
        """The path and the query of the request, unchanged."""

    @property
    def peer(self) -> str:
        """The address of the client; empty if the address is unknown."""

    @property
    def raw_headers(self) -> HeaderLines:
        """The headers of the request, with names in lower case."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """The facts about a request that the server knows before it reads the request's body."""

    id: str
    uri: str
    agent: str
    sources: Sequence[str]


class Status(msgspec.Struct, frozen=True):
    """The fields of a `Status` that was the body of a response."""

    metadata: Mapping[str, Any] = _NO_METADATA
    status: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None
    code: int = 0


class Named(msgspec.Struct, frozen=True, gc=False):
    """The name and namespace of the object in the body of a request."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


_read_status = msgspec.json.Decoder(Status).decode
_encode = msgspec.json.Encoder().encode
_read_anything = msgspec.json.Decoder().decode


class AuthorizationAnnotations(NamedTuple):
    """The authorization decision in the form of annotations."""

    decision: str | None = None
    """The decision `allow` or `forbid`; None if the request was not authorized."""
    reason: str | None = None
    annotations: Mapping[str, str] = _NOTHING


@lru_cache(_VERDICTS)
def _ruling(verdict: Verdict | None) -> AuthorizationAnnotations:
    if verdict is None:
        return AuthorizationAnnotations()
    if verdict.error and not verdict.allows:  # Kubernetes records no details of an authorizer's error
        return AuthorizationAnnotations(None, _UNDECIDED, {REASON: _UNDECIDED})
    decision = "allow" if verdict.allows else "forbid"
    return AuthorizationAnnotations(decision, verdict.reason, {DECISION: decision, REASON: verdict.reason})


class Record(msgspec.Struct, gc=False):
    """The facts about one request; only one thread may use a record.

    A request object that refers to its record must drop this reference when the request ends, because Python's cycle
    collector does not track records.
    """

    handling: AuditDecision
    attributes: Attributes
    user: User | None
    """The user of the request, or None if the user is unknown."""
    _sent: ReceivedRequest
    received: int
    """The time at which the request arrived, in microseconds since 1970."""
    _told: Mapping[str, str]
    """Annotations of the audit event that the request's handlers set; the handlers may add more annotations later."""
    started: Callable[[Record], None] | None = None
    """A callback that the record calls when the response starts."""
    impersonated: User | None = None
    constraint: str = ""
    """The verb of the constrained impersonation mode, or None if no constrained mode was used."""
    panicked: bool = False
    """Whether an internal error interrupted the request."""
    code: int = 0
    """The status code of the response; None until the status is known."""
    status: Status | None = None
    request_object: msgspec.Raw | None = None
    response_object: msgspec.Raw | None = None
    told_object: Named | None = None
    """The object that the body of the request names."""
    revision: int = 0
    """The revision that the request wrote, if it is known."""
    verdict: Verdict | None = None
    """The authorization verdict."""
    _head: Head | None = None

    @property
    def head(self) -> Head:
        """The facts about the request that the server knows before it reads the request's body."""
        if self._head is None:
            sent = self._sent
            agent, forwarded, real = sent.raw_headers.read(_client_headers)
            came_from = sources(forwarded, real, sent.peer)
            self._head = Head(sent.id.decode("utf-8", "replace"), sent.uri, agent, came_from)
        return self._head

    @property
    def name(self) -> str:
        """The name of the request's object, or an empty string if the request has no object."""
        return self.attributes.name or (self.told_object.name if self.told_object is not None else "")

    @property
    def ruling(self) -> AuthorizationAnnotations:
        """The authorization decision and its reason."""
        return _ruling(self.verdict)

    @property
    def annotations(self) -> Mapping[str, str]:
        """The event's annotations; only the server may set the annotations of the authorization decision."""
        own = _ruling(self.verdict).annotations
        return {**own, **self._told, **own} if self._told else own

    @property
    def wants_request(self) -> bool:
        """Return whether the audit level requires that the request's body is recorded."""
        return self.handling.level.wants_request

    @property
    def wants_response(self) -> bool:
        """Return whether the audit level requires that the response's body is recorded."""
        return self.handling.level.wants_response

    def record_object(self, fields: Mapping[str, Any], encode: Callable[[], bytes]) -> None:
        """Record the object that a decoded body names; keep the encoded body if the audit level requires it."""
        if metadata := fields.get("metadata"):
            say = metadata.get
            self.told_object = Named(
                say("namespace") or "", say("name") or "", say("uid") or "", say("resourceVersion") or ""
            )
        if self.handling.level.wants_request:
            self.set_request_object(encode())

    def set_request_object(self, body: bytes) -> None:
        """Keep the request's body, which is JSON, if the audit level requires bodies of requests."""
        if self.wants_request:
            self.request_object = self._kept(body)

    def answered(self, code: int, body: bytes) -> None:
        """Record a response before its JSON body is sent; keep the body if the audit level requires it."""
        self.code = code
        if body.startswith(_IS_STATUS):
            self.status = _read_status(body)
        if self.handling.level.wants_response:
            self.response_object = self._kept(body)

    def begun(self, code: int) -> None:
        """Record the start of the response, and call the callback `started` if one is set."""
        self.code = code
        if self.started is not None:
            started, self.started = self.started, None
            started(self)

    def _kept(self, body: bytes) -> msgspec.Raw | None:
        """Return JSON on one line, without managedFields if the policy omits these fields.

        The function returns None if the JSON is invalid.
        """
        try:
            if self.handling.without_managed_fields and b'"managedFields"' in body:
                return msgspec.Raw(_encode(_without_managed_fields(_read_anything(body))))
            return msgspec.Raw(msgspec.json.format(body, indent=-1))
        except (ValueError, msgspec.MsgspecError):
            return None


def _client_headers(lines: Sequence[HeaderLine]) -> tuple[str, bytes, bytes]:
    """Return the user agent, truncated to the maximum length, and the headers that contain the client's addresses."""
    values = by_name(lines)
    agent = values.get(b"user-agent", b"").decode("utf-8", "replace")
    if len(agent) > _AGENT:
        agent = f"{agent[:_AGENT]}...TRUNCATED"
    return agent, values.get(b"x-forwarded-for", b""), values.get(b"x-real-ip", b"")


def _without_managed_fields(fields: Any) -> Any:
    """Remove managedFields from an object, or from each object of a list."""
    if isinstance(fields, dict):
        for each in (fields, *(fields.get("items") or ())):
            if isinstance(each, dict) and isinstance(metadata := each.get("metadata"), dict):
                metadata.pop("managedFields", None)
    return fields

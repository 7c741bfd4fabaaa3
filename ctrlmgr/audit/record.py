"""One request on its way through the server, as far as the audit log will tell of it.

Guarantees:
- Of objects no more is kept than the level asks for, and Secrets' contents only where a policy says so.
- A request that is not audited never has a `Record`.
- A request notes on its way what will be forgotten, and no more: all else is looked up when it is written down.

Rules: apiserver `pkg/audit/request.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ctrlmgr.audit.policy import Handling
from ctrlmgr.audit.sources import sources
from ctrlmgr.authentication.header_lines import HeaderLine, HeaderLines, by_name
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Verdict

DECISION: Final = "authorization.k8s.io/decision"
REASON: Final = "authorization.k8s.io/reason"
"""The annotations that say whether a request was allowed, and why."""
_UNDECIDED: Final = "internal error"

DEPRECATED: Final = "k8s.io/deprecated"
"""The annotation of a request to a version that is going."""

_AGENT = 1024
"""Characters of a User-Agent that are kept."""
_VERDICTS = 1024
"""Verdicts of which it is kept what is said of them: those of a client are the same again and again."""
_IS_STATUS = b'{"kind":"Status",'
_NO_METADATA: Mapping[str, Any] = {}
_NOTHING: Mapping[str, str] = {}


class Sent(Protocol):
    """A request as it came."""

    @property
    def id(self) -> bytes:
        """What it is called."""

    @property
    def uri(self) -> str:
        """The path and the query, as they were sent."""

    @property
    def peer(self) -> str:
        """The address that the client has, empty if it has none."""

    @property
    def raw_headers(self) -> HeaderLines:
        """Its headers, names in lower case."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """What a request says before its body."""

    id: str
    uri: str
    agent: str
    sources: Sequence[str]


class Status(msgspec.Struct, frozen=True):
    """A `Status` that was the answer."""

    metadata: Mapping[str, Any] = _NO_METADATA
    status: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None
    code: int = 0


class Named(msgspec.Struct, frozen=True, gc=False):
    """Which object is meant, as a body says it."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


_read_status = msgspec.json.Decoder(Status).decode
_encode = msgspec.json.Encoder().encode
_read_anything = msgspec.json.Decoder().decode


class Ruling(NamedTuple):
    """What is said of what was decided about a request."""

    decision: str | None = None
    """`allow` or `forbid`; None where that is not known."""
    reason: str | None = None
    annotations: Mapping[str, str] = _NOTHING


@lru_cache(_VERDICTS)
def _ruling(verdict: Verdict | None) -> Ruling:
    if verdict is None:
        return Ruling()
    if verdict.error and not verdict.allows:  # of what could not be found out no more than that
        return Ruling(None, _UNDECIDED, {REASON: _UNDECIDED})
    decision = "allow" if verdict.allows else "forbid"
    return Ruling(decision, verdict.reason, {DECISION: decision, REASON: verdict.reason})


class Record(msgspec.Struct, gc=False):
    """What is known of one request; used on one thread.

    Who has a request that holds its record takes it away in the end: the collector does not look for the two.
    """

    handling: Handling
    attributes: Attributes
    user: User | None
    """None: it is not known whose it is."""
    _sent: Sent
    received: int
    """When it came: microseconds since 1970."""
    _told: Mapping[str, str]
    """Annotations, which may still come."""
    started: Callable[[Record], None] | None = None
    """Called when the answer begins."""
    impersonated: User | None = None
    constraint: str = ""
    """The verb of the constrained mode in which that was allowed, if it was."""
    panicked: bool = False
    """Whether the server did not know how to go on."""
    code: int = 0
    """The status of the answer, once there is one."""
    status: Status | None = None
    request_object: msgspec.Raw | None = None
    response_object: msgspec.Raw | None = None
    told_object: Named | None = None
    """What the body says of which object is meant."""
    revision: int = 0
    """The revision that the request wrote, as far as that is known."""
    verdict: Verdict | None = None
    """Whether it may be made, and why."""
    _head: Head | None = None

    @property
    def head(self) -> Head:
        """What it says before its body."""
        if self._head is None:
            sent = self._sent
            agent, forwarded, real = sent.raw_headers.read(_said)
            came_from = sources(forwarded, real, sent.peer)
            self._head = Head(sent.id.decode("utf-8", "replace"), sent.uri, agent, came_from)
        return self._head

    @property
    def name(self) -> str:
        """The name of the object that is meant, empty for none."""
        return self.attributes.name or (self.told_object.name if self.told_object is not None else "")

    @property
    def ruling(self) -> Ruling:
        """Whether it is allowed, and why."""
        return _ruling(self.verdict)

    @property
    def annotations(self) -> Mapping[str, str]:
        """What is said of it beside the fields that every event has; what was decided about it nobody else says."""
        own = _ruling(self.verdict).annotations
        return {**own, **self._told, **own} if self._told else own

    @property
    def wants_request(self) -> bool:
        """Whether the body of the request is to be kept."""
        return self.handling.level.wants_request

    @property
    def wants_response(self) -> bool:
        """Whether the body of the answer is to be kept."""
        return self.handling.level.wants_response

    def hear(self, fields: Mapping[str, Any], encode: Callable[[], bytes]) -> None:
        """Note which object a decoded body is about, if it says so; keep what it encodes to as far as it is wanted."""
        if told := fields.get("metadata"):
            say = told.get
            self.told_object = Named(
                say("namespace") or "", say("name") or "", say("uid") or "", say("resourceVersion") or ""
            )
        if self.handling.level.wants_request:
            self.asked(encode())

    def asked(self, body: bytes) -> None:
        """Keep the body of the request, which is JSON, as far as it is wanted."""
        if self.wants_request:
            self.request_object = self._kept(body)

    def answered(self, code: int, body: bytes) -> None:
        """Keep an answer, which is JSON, as far as it is wanted; it has not been sent yet."""
        self.code = code
        if body.startswith(_IS_STATUS):
            self.status = _read_status(body)
        if self.handling.level.wants_response:
            self.response_object = self._kept(body)

    def begun(self, code: int) -> None:
        """Note that the answer begins to be sent, if anyone is to be told: there is `started`."""
        self.code = code
        if self.started is not None:
            started, self.started = self.started, None
            started(self)

    def _kept(self, body: bytes) -> msgspec.Raw | None:
        """Return JSON on one line, without managed fields if the policy says so; None for what is no JSON."""
        try:
            if self.handling.without_managed_fields and b'"managedFields"' in body:
                return msgspec.Raw(_encode(_without_managed_fields(_read_anything(body))))
            return msgspec.Raw(msgspec.json.format(body, indent=-1))
        except (ValueError, msgspec.MsgspecError):
            return None


def _said(lines: Sequence[HeaderLine]) -> tuple[str, bytes, bytes]:
    """Return which program headers name, as far as that is kept, and the headers about where a request came from."""
    values = by_name(lines)
    agent = values.get(b"user-agent", b"").decode("utf-8", "replace")
    if len(agent) > _AGENT:
        agent = f"{agent[:_AGENT]}...TRUNCATED"
    return agent, values.get(b"x-forwarded-for", b""), values.get(b"x-real-ip", b"")


def _without_managed_fields(fields: Any) -> Any:
    """Drop who owns what of an object, or of each object of a list."""
    if isinstance(fields, dict):
        for each in (fields, *(fields.get("items") or ())):
            if isinstance(each, dict) and isinstance(metadata := each.get("metadata"), dict):
                metadata.pop("managedFields", None)
    return fields

"""Which representation to answer in, and which a body came in: `Accept` and `Content-Type`.

Guarantees:
- Answers are JSON or YAML, plain or as `Table`, `PartialObjectMetadata` or a list of those. Clients that would
  rather have protobuf get JSON if they take it at all.
- What is accepted and refused, and in which words, is what kube-apiserver does: its router first looks at types alone
  (go-restful `route.go`, `curly.go`), then its handlers at parameters (apiserver
  `pkg/endpoints/handlers/negotiation/negotiate.go`), and each has its own message.
- A header is parsed once and its meaning cached: clients send the same few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctrlmgr.caches import BoundedCache
from ctrlmgr.errors import NotAcceptable, StatusDetails, UnsupportedMediaType
from ctrlmgr.server.describe.document import Clause, alternatives, preferred

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_TYPES = (JSON, YAML, PROTOBUF)
_STREAM_TYPES = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")

PATCH_TYPES = frozenset(
    {
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    }
)
"""What a PATCH may come as."""

_HUMANS = (b"curl", b"Wget", b"Mozilla/5.0")
"""How the names of programs start whose users read the answers themselves."""


class Form(NamedTuple):
    """What an object is turned into: `Table`, `PartialObjectMetadata`, `PartialObjectMetadataList`; "" for itself."""

    kind: str
    version: str
    """Of the group meta.k8s.io: `v1` or `v1beta1`."""

    @property
    def api_version(self) -> str:
        """`meta.k8s.io/v1`."""
        return f"meta.k8s.io/{self.version}"


AS_IS = Form("", "")
_FORM = ("as", "g", "v")
"""The parameters that name a form."""
_FORMS = {
    Form(kind, version)
    for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
    for version in ("v1", "v1beta1")
}


class Representation(NamedTuple):
    """How to answer."""

    form: Form = AS_IS
    yaml: bool = False
    pretty: bool = False
    protobuf: bool = False
    """Of errors alone: objects are told in JSON or YAML."""


PLAIN = Representation()
"""Compact JSON: what programs ask for."""
_IN_PROTOBUF = Representation(protobuf=True)


_known: Final[BoundedCache[tuple[bytes, bool, bool, bool], Representation]] = BoundedCache(
    "accept-headers", entries=1024, largest=512
)
"""By a header, and by what an endpoint is that understands it so: the three flags of `Accepts`."""


class Accepts:
    """Reads `Accept` headers of requests to one kind of endpoint."""

    def __init__(self, *, lists: bool = False, transforms: bool = True, routed: bool = True) -> None:
        """Say whether the endpoint `lists` (and so may stream) and whether it `transforms` objects into forms.

        What is not `routed` has no router before its handlers: that is so with custom kinds.
        """
        self._lists = lists
        self._produces = (*_TYPES, *_STREAM_TYPES) if lists else _TYPES
        self._transforms = transforms
        self._routed = routed

    def negotiate(self, accept: bytes) -> Representation:
        """Return the best representation for an `Accept` header (empty if there is none).

        Raises `NotAcceptable` when none will do.
        """
        key = (accept, self._lists, self._transforms, self._routed)
        representation = _known.get(key)
        if representation is None:
            representation = self._negotiate(accept.decode("latin-1"))
            _known.put(key, representation, len(accept))
        return representation

    def _negotiate(self, accept: str) -> Representation:
        if not accept:
            return PLAIN
        if self._routed and not _router_accepts(accept):
            available = ", ".join(self._produces)
            message = f"406: Not Acceptable\n\nAvailable representations: {available}"
            raise NotAcceptable(message, details=StatusDetails())
        clauses = preferred(accept)
        for clause in clauses:
            if representation := self._representation(clause):
                return representation
        types = ", ".join(
            _TYPES if not self._routed or any(_is_json(each.media_type) for each in clauses) else (JSON, YAML)
        )
        raise NotAcceptable(f"only the following media types are accepted: {types}")

    def _representation(self, clause: Clause) -> Representation | None:
        if not (_is_json(clause.media_type) or clause.media_type == YAML):
            return None
        parameters = clause.parameters
        form = AS_IS
        if not parameters.keys().isdisjoint(_FORM):
            form = Form(parameters.get("as", ""), parameters.get("v", ""))
            if not self._transforms or form not in _FORMS or parameters.get("g") != "meta.k8s.io":
                return None
        if parameters.get("stream", "watch") not in ("watch", ""):
            return None
        return Representation(form, clause.media_type == YAML, parameters.get("pretty") == "1")


def of_error(accept: bytes) -> Representation:
    """Return how to tell of an error what no `Representation` suits: in protobuf if that is asked for, else in JSON."""
    if PROTOBUF.encode() not in accept:
        return PLAIN
    asked = [clause.parameters for clause in preferred(accept.decode("latin-1")) if clause.media_type == PROTOBUF]
    return _IN_PROTOBUF if any(parameters.keys().isdisjoint(_FORM) for parameters in asked) else PLAIN


def _is_json(media_type: str) -> bool:
    return media_type in (JSON, "application/*", "*/*")


def _router_accepts(accept: str) -> bool:
    """Whether the router lets an `Accept` through: it reads no parameters and no stars but `*/*`."""
    types = {clause.partition(";")[0].strip() for clause in alternatives(accept)}
    return not types.isdisjoint({*_TYPES, "*/*"})


def is_pretty(query: dict[str, list[str]], user_agent: bytes) -> bool:
    """Whether `?pretty` or the caller's being a browser or a command line tool asks for indented JSON."""
    if query and (asked := query.get("pretty", [""])[0]):
        return asked in ("1", "t", "T", "true", "TRUE", "True")
    return user_agent.startswith(_HUMANS)


def body_type(content_type: bytes) -> str:
    """Return the media type of a body that is an object; without a header it is JSON.

    Raises `UnsupportedMediaType` for what cannot be read.
    """
    media_type = _media_type(content_type) if content_type else JSON
    if media_type not in _TYPES:
        types = ", ".join(_TYPES)
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {types}"
        )
    return media_type


def patch_type(content_type: bytes, *, taken: Sequence[str] = ()) -> str:
    """Return the media type of a body that is a patch; raises `UnsupportedMediaType` for what is none.

    `taken` are those that a custom kind takes, whose handler has words of its own.
    """
    media_type = _media_type(content_type)
    if taken and media_type not in taken:
        accepted = ", ".join(taken)
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
    if media_type not in PATCH_TYPES:
        raise UnsupportedMediaType("415: Unsupported Media Type", details=StatusDetails())
    return media_type


def _media_type(content_type: bytes) -> str:
    return content_type.partition(b";")[0].strip().lower().decode("latin-1")

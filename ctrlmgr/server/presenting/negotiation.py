"""Negotiates the representation of responses and the media type of bodies, from `Accept` and `Content-Type`.

Guarantees:
- Responses are JSON or YAML, either of the whole objects or as `Table`, `PartialObjectMetadata` or a list of these. A
  client that prefers protobuf receives JSON if it also accepts JSON.
- The decisions and error messages are those of kube-apiserver. In kube-apiserver, the router reads only the media types
  (go-restful `route.go`, `curly.go`), and the handlers also read the parameters (apiserver
  `pkg/endpoints/handlers/negotiation/negotiate.go`). The error messages of the router and of the handlers differ.
- The negotiated representation is cached by header, because clients send few different headers.
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
"""The media types of the body of a PATCH request."""

_HUMANS = (b"curl", b"Wget", b"Mozilla/5.0")
"""Prefixes of the user agents of tools whose users read the responses directly."""


class Form(NamedTuple):
    """The kind of the response: `Table`, `PartialObjectMetadata(List)`, or "" for the resource's own kind."""

    kind: str
    version: str
    """The version of the group meta.k8s.io that the client requests: `v1` or `v1beta1`."""

    @property
    def api_version(self) -> str:
        """`meta.k8s.io/v1`."""
        return f"meta.k8s.io/{self.version}"


AS_IS = Form("", "")
_FORM = ("as", "g", "v")
"""The keys of the media type parameters that select a form such as `Table`."""
_FORMS = {
    Form(kind, version)
    for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
    for version in ("v1", "v1beta1")
}


class Representation(NamedTuple):
    """The representation of a response: its format and its form."""

    form: Form = AS_IS
    yaml: bool = False
    pretty: bool = False
    protobuf: bool = False
    """The protobuf representation, which is used only for errors; objects are represented in JSON or YAML."""


PLAIN = Representation()
"""Compact JSON, which is the default for programs."""
_IN_PROTOBUF = Representation(protobuf=True)


_known: Final[BoundedCache[tuple[bytes, bool, bool, bool], Representation]] = BoundedCache(
    "accept-headers", entries=1024, largest=512
)
"""The cached representations, by header and the three flags of `Accepts`."""


class Accepts:
    """Parses `Accept` headers for one type of endpoint."""

    def __init__(self, *, lists: bool = False, transforms: bool = True, routed: bool = True) -> None:
        """Create the parser for an endpoint.

        `lists` is True if the endpoint returns lists, and therefore may stream. `transforms` is True if the endpoint
        supports tables and metadata.

        `routed` is False for custom kinds, whose handlers have no router before them.
        """
        self._lists = lists
        self._produces = (*_TYPES, *_STREAM_TYPES) if lists else _TYPES
        self._transforms = transforms
        self._routed = routed

    def negotiate(self, accept: bytes) -> Representation:
        """Return the representation that an `Accept` header prefers; the header may be empty.

        Raises `NotAcceptable` if the header accepts no representation.
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
    """Return the representation of an error for clients that accept none: protobuf if requested, otherwise JSON."""
    if PROTOBUF.encode() not in accept:
        return PLAIN
    asked = [clause.parameters for clause in preferred(accept.decode("latin-1")) if clause.media_type == PROTOBUF]
    return _IN_PROTOBUF if any(parameters.keys().isdisjoint(_FORM) for parameters in asked) else PLAIN


def _is_json(media_type: str) -> bool:
    return media_type in (JSON, "application/*", "*/*")


def _router_accepts(accept: str) -> bool:
    """Return whether the router accepts an `Accept` header.

    The router ignores parameters, and knows only the wildcard `*/*`.
    """
    types = {clause.partition(";")[0].strip() for clause in alternatives(accept)}
    return not types.isdisjoint({*_TYPES, "*/*"})


def is_pretty(query: dict[str, list[str]], user_agent: bytes) -> bool:
    """Return whether JSON is indented.

    The query parameter `pretty` decides whether JSON is indented. Without the parameter, JSON is indented for browsers
    and command-line tools.
    """
    if query and (pretty := query.get("pretty", [""])[0]):
        return pretty in ("1", "t", "T", "true", "TRUE", "True")
    return user_agent.startswith(_HUMANS)


def body_type(content_type: bytes) -> str:
    """Return the media type of a body that contains an object; JSON if the request has no Content-Type.

    Raises `UnsupportedMediaType` for a type other than JSON, YAML and protobuf.
    """
    media_type = _media_type(content_type) if content_type else JSON
    if media_type not in _TYPES:
        types = ", ".join(_TYPES)
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {types}"
        )
    return media_type


def patch_type(content_type: bytes, *, taken: Sequence[str] = ()) -> str:
    """Return the media type of a patch; raises `UnsupportedMediaType` if the media type is not that of a patch.

    `taken` are the patch types that a custom kind supports; the handler of custom kinds has its own error message.
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

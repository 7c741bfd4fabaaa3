"""Decodes Kubernetes' protobuf: what kubectl from 1.32 on and typed client-go send, as the dicts that JSON would give.

Guarantees:
- The answer has the shape of the JSON form: its names, embedded structs inlined, bytes as base64, times as RFC 3339,
  raw JSON decoded. Zero values stay: whether one of them is written out is the codec's knowledge, not the wire's.
- A body is read once, front to back, in time linear in its length; nesting is bounded. Whatever is not a whole,
  well-formed message is a `BadRequest` in Kubernetes' words.
- Fields with unknown numbers are stepped over, as protobuf wants it.

A body is four magic bytes and a `runtime.Unknown`, which names the kind and holds the object
(apimachinery `pkg/runtime/serializer/protobuf/protobuf.go`).
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.errors import BadRequest
from ctrlmgr.golang.go_text import quote
from ctrlmgr.schema.protobuf.message import Message, message, message_of

MAGIC = b"k8s\x00"
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_SCHEMES = {
    "apiextensions.k8s.io": "pkg/apiserver/apiserver.go:55",
    "apiregistration.k8s.io": "pkg/apiserver/scheme/scheme.go:28",
}
_SCHEME = "pkg/api/legacyscheme/scheme.go:30"

_TYPE_META = Message("TypeMeta", [(1, "apiVersion", "string"), (2, "kind", "string")])
_UNKNOWN = Message("Unknown", [(1, "typeMeta", _TYPE_META), (2, "raw", "extent")])


def decode(data: bytes, api_version: str = "", kind: str = "") -> Unstructured:
    """Decode a request body to a dict with kind and apiVersion; these default to the given ones, as in Kubernetes.

    Raises `BadRequest` for what is not protobuf, is cut off or malformed, or is of a kind that is not known.
    """
    try:
        head = _open(data)
    except BadRequest as error:
        reason = f"{error} ({_summary(data)})"
        raise BadRequest(f"the object provided is unrecognized (must be of type {kind}): {reason}") from error
    start, stop = head.get("raw", (0, 0))
    type_meta = head.get("typeMeta", {})
    actual_kind, actual_version = type_meta.get("kind") or kind, type_meta.get("apiVersion") or api_version
    try:
        fields = _definition(actual_version, actual_kind, api_version).read(data, start, stop, 0)
    except BadRequest as error:
        version = actual_version.rpartition("/")[2]
        what = f'{actual_kind} in version "{version}" cannot be handled as a {kind or actual_kind}'
        raise BadRequest(f"{what}: {error}") from error
    return {"kind": actual_kind, "apiVersion": actual_version, **fields}


def _open(data: bytes) -> dict[str, Any]:
    if not data:
        raise BadRequest("empty data")
    if not data.startswith(MAGIC):
        expected = " ".join(str(byte) for byte in MAGIC)
        raise BadRequest(f"provided data does not appear to be a protobuf message, expected prefix [{expected}]")
    if len(data) == len(MAGIC):
        raise BadRequest("empty body")
    return _UNKNOWN.read(data, len(MAGIC), len(data), 0)


def _definition(api_version: str, kind: str, wanted: str) -> Message:
    name = message_of(api_version, kind)
    if name is None:
        raise BadRequest(not_registered(kind, api_version, wanted))
    return message(name)


def not_registered(kind: str, api_version: str, wanted: str) -> str:
    """Return the words for a kind that nothing is known of; a scheme is called by the line of Go that makes it.

    `wanted` is the apiVersion of the endpoint, whose server has a scheme of its own.
    """
    scheme = _SCHEMES.get(wanted.partition("/")[0], _SCHEME)
    return f'no kind {quote(kind)} is registered for version {quote(api_version)} in scheme "{scheme}"'


def _summary(data: bytes, limit: int = 30) -> str:
    """Show the start of a body, as apiserver's `summarizeData` does."""
    if not data:
        return "<empty>"
    start = data[:limit].decode("utf-8", "replace") if data.startswith(b"{") else data[:limit].hex()
    return start + " ..." * (len(data) > limit)

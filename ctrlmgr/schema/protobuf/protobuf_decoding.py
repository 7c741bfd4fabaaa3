"""Decodes Kubernetes' protobuf format to dicts in the form of JSON; kubectl and client-go send protobuf.

Guarantees:
- The result has the same form as decoded JSON: JSON's names, embedded structs inline, bytes as base64, times as RFC
  3339, and raw JSON decoded. The result contains zero values, because the codec decides which zero values are written.
- The decoder reads each byte of a body once, and refuses bodies that are nested too deeply. A malformed message raises
  `BadRequest` with Kubernetes' message.
- The decoder skips fields with unknown numbers, as protobuf requires.

A body consists of four magic bytes and a `runtime.Unknown` message, which contains the kind's name and the object
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
    """Decode a request body to a dict with kind and apiVersion.

    If the body contains no kind or apiVersion, the function uses the given kind and apiVersion, as Kubernetes does.
    Raises `BadRequest` if the body is not protobuf, is truncated or malformed, or has an unknown kind.
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


def _definition(api_version: str, kind: str, expected: str) -> Message:
    name = message_of(api_version, kind)
    if name is None:
        raise BadRequest(not_registered(kind, api_version, expected))
    return message(name)


def not_registered(kind: str, api_version: str, expected: str) -> str:
    """Return the error message for an unknown kind; the message names the line of Go code that creates the scheme.

    `expected` is the apiVersion of the endpoint, which determines the server and its scheme.
    """
    scheme = _SCHEMES.get(expected.partition("/")[0], _SCHEME)
    return f'no kind {quote(kind)} is registered for version {quote(api_version)} in scheme "{scheme}"'


def _summary(data: bytes, limit: int = 30) -> str:
    """Return the start of a body as apiserver's `summarizeData` shows it."""
    if not data:
        return "<empty>"
    start = data[:limit].decode("utf-8", "replace") if data.startswith(b"{") else data[:limit].hex()
    return start + " ..." * (len(data) > limit)

"""Encodes a `Status` in Kubernetes' protobuf format, so that clients that accept only protobuf can read errors.

Guarantees: the bytes equal those of gogo/protobuf. gogo/protobuf writes fields in the order of their numbers.
gogo/protobuf also writes empty fields, unless the field's type is a pointer. The field numbers are those of
apimachinery `pkg/apis/meta/v1/generated.proto`; the envelope is that of `pkg/runtime/serializer/protobuf`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.schema.protobuf.protobuf_decoding import MAGIC
from ctrlmgr.schema.protobuf.wire import write_number, write_part


def encode_status(status: Mapping[str, Any]) -> bytes:
    """Encode a Status, which must contain `kind` and `apiVersion`, within its envelope."""
    kind = _text(1, status["apiVersion"]) + _text(2, status["kind"])
    raw = _list_meta(status.get("metadata") or {})
    raw += b"".join(_text(number, status.get(name, "")) for number, name in ((2, "status"), (3, "message")))
    raw += _text(4, status.get("reason", ""))
    if "details" in status:
        raw += write_part(5, _details(status["details"]))
    raw += write_number(6, status.get("code", 0))
    return MAGIC + write_part(1, kind) + write_part(2, raw) + _text(3, "") + _text(4, "")


def _list_meta(metadata: Mapping[str, Any]) -> bytes:
    content = _text(1, "") + _text(2, metadata.get("resourceVersion", "")) + _text(3, metadata.get("continue", ""))
    return write_part(1, content)


def _details(details: Mapping[str, Any]) -> bytes:
    names = b"".join(_text(number, details.get(name, "")) for number, name in ((1, "name"), (2, "group"), (3, "kind")))
    causes = b"".join(write_part(4, _cause(each)) for each in details.get("causes", ()))
    return names + causes + write_number(5, details.get("retryAfterSeconds", 0)) + _text(6, details.get("uid", ""))


def _cause(cause: Mapping[str, str]) -> bytes:
    return b"".join(
        _text(number, cause.get(name, "")) for number, name in ((1, "reason"), (2, "message"), (3, "field"))
    )


def _text(number: int, value: str) -> bytes:
    return write_part(number, value.encode())

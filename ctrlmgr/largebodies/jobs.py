"""The jobs that a worker process can run, and the criteria by which the server decides that a body is large.

The first argument of each job is the engine. Pickle encodes a job by its name, so each job is a function of this
module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.engine.operations import Answer, Operation, Target
from ctrlmgr.engine.request_options import APPLY_PATCH, JSON_PATCH, Body, DeleteOptions, Requester, WriteOptions
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.engine.writes.body_metadata import check_namespace
from ctrlmgr.schema import yaml_document
from ctrlmgr.schema.codec import YAML
from ctrlmgr.schema.protobuf.protobuf_decoding import MEDIA_TYPE as PROTOBUF
from ctrlmgr.schema.strict_json import has_escaped_letters

LARGE: Final = 64 * 1024
"""The number of bytes above which a body is large."""
MANY: Final = 2_000
"""The number of JSON values above which a body is large, even if it has few bytes."""
_FEW_BYTES: Final = MANY
"""The minimum number of bytes of a body that can contain `MANY` values."""
_LARGE_PROTOBUF: Final = 16 * 1024
"""The number of bytes above which a protobuf body is large; an empty list element takes only two bytes."""
_LARGE_YAML: Final = 8 * 1024
"""The number of bytes above which a YAML body is large; parsing YAML takes about ten times as long as parsing JSON."""
_ANCHOR: Final = re.compile(rb"[\s:,\[{-]&[^\s&,\[\]{}\"']+\s").search
"""Matches a YAML anchor, because a short document with anchors can represent many values."""


def is_large(body: Body, cost: int) -> bool:
    """Return whether a body is large, measured in bytes, in values, or after the expansion of YAML aliases.

    `cost` is the relative cost of validating a byte of the body's kind.
    """
    data, media_type = body.data, body.media_type
    if len(data) * cost > LARGE:
        return True
    if media_type == PROTOBUF:
        return len(data) * cost > _LARGE_PROTOBUF
    if media_type in (YAML, APPLY_PATCH) and _is_large_yaml(data, cost):
        return True
    if media_type == JSON_PATCH and (b"copy" in data or has_escaped_letters(data)):
        return True
    return has_many_values(data, cost)


def has_many_values(data: bytes, cost: int) -> bool:
    """Return whether a JSON body may contain many values."""
    return len(data) * cost > _FEW_BYTES and (data.count(b",") + data.count(b"{") + data.count(b"[")) * cost > MANY


def is_large_object(obj: Object, cost: int) -> bool:
    """Return whether a stored object is large."""
    return obj.size * cost > LARGE or (obj.size * cost > _FEW_BYTES and has_many_values(obj.body, cost))


def _is_large_yaml(data: bytes, cost: int) -> bool:
    if b"*" in data and _ANCHOR(data) is not None:
        return True
    return len(data) * cost > _LARGE_YAML and not data.lstrip().startswith(b"{")


def reporting_body(body: Body, ask: Callable[..., Any]) -> Body:
    """Return a body that reports its decoded form to the server's audit log by calling `ask`."""

    def tell(fields: Unstructured, encode: Callable[[], bytes]) -> None:
        metadata: Mapping[str, Any] = fields.get("metadata") or {}
        known = {name: metadata[name] for name in _IDENTITY if name in metadata}
        ask("heard", {"metadata": known}, encode() if ask("keeps") else b"")

    return body._replace(heard=tell)


_IDENTITY: Final = ("namespace", "name", "uid", "resourceVersion")


def create(
    engine: WriteEngine, target: Target, body: Body, options: WriteOptions, requester: Requester
) -> Operation[Answer]:
    """Handle a create request: store the object that the request's body contains."""
    return engine.create(target, body, options, requester)


def update(
    engine: WriteEngine, target: Target, body: Body, options: WriteOptions, requester: Requester
) -> Operation[Answer]:
    """Handle an update request: replace the stored object with the object in the request's body."""
    return engine.update(target, body, options, requester)


def patch(
    engine: WriteEngine, target: Target, body: Body, options: WriteOptions, requester: Requester
) -> Operation[Answer]:
    """Handle a patch request: patch the stored object, or apply the request's body by server-side apply."""
    return engine.patch(target, body, options, requester)


def delete(
    engine: WriteEngine, target: Target, body: Body | None, options: DeleteOptions, requester: Requester
) -> Operation[Answer]:
    """Handle a delete request: delete the stored object with the DeleteOptions in the request's body."""
    return engine.delete(target, body, options, requester)


def options_of(engine: WriteEngine, body: Body, options: DeleteOptions) -> Operation[DeleteOptions]:
    """Return the DeleteOptions of a deletion request."""
    yield from ()
    return engine.options_of(body, options)


def reviewed(
    engine: WriteEngine, target: Target, body: Body, options: WriteOptions, requester: Requester
) -> Operation[tuple[Unstructured, list[str]]]:
    """Decode and admit the body of a review request; return the resulting body and the warnings for the client."""
    warnings = list[str]()
    fields = engine.plan(target.kind).decode(body, options, warnings)
    check_namespace(engine.request(target, options, requester), metadata_of(fields))
    if engine.admission.handles(target.kind.resource, target.subresource, Verb.CREATE):
        answer = yield from engine.admit(target, Verb.CREATE, fields, None, options, requester)
        warnings += answer.warnings
    return fields, warnings


def as_json(engine: WriteEngine, body: Body) -> Operation[bytes]:
    """Return a patch as JSON; a patch that cannot be converted is returned unchanged."""
    yield from ()
    if body.media_type != APPLY_PATCH:
        return body.data
    try:
        return msgspec.json.encode(yaml_document.decode(body.data)[0])
    except (ValueError, TypeError):
        return body.data

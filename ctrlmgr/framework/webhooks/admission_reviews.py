"""Answers an AdmissionReview by calling an admission function of an app.

Guarantees: an admission function decides in the same way as inside the API server. A refusal becomes a 403 response
with the function's message. Any other exception denies the write with a 500 that names the function and the line that
raised it. The response contains a function's changes as a JSON patch, which contains nothing else.

The format of the response is that of `admission.k8s.io/v1`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ctrlmgr.errors import ApiError, BadRequest
from ctrlmgr.framework.app_admission import AppAdmission, Refused, Write, decide, failed, refusal_text
from ctrlmgr.framework.cached_objects import Cache
from ctrlmgr.framework.webhooks.json_difference import difference

VERSION: Final = "admission.k8s.io/v1"


class _User(msgspec.Struct):
    username: str = ""
    groups: list[str] = []  # msgspec copies the data of the raw value.


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str
    name: str = ""
    namespace: str = ""
    user_info: _User = msgspec.field(default_factory=_User)
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    dry_run: bool | None = None


class _Review(msgspec.Struct):
    request: _Request


_decode = msgspec.json.Decoder(_Review).decode


def answer(declared: AppAdmission, body: bytes, cache: Cache) -> bytes:
    """Return the answer to the AdmissionReview in `body`; raises `BadRequest` if `body` is not an AdmissionReview.

    The function reads other objects from `cache`.
    """
    try:
        request = _decode(body).request
    except msgspec.MsgspecError as error:
        raise BadRequest(f"the body is not an AdmissionReview: {error}") from error
    warnings: list[str] = []
    response: dict[str, Any] = {"uid": request.uid, **_decided(declared, request, warnings, cache)}
    if warnings:
        response["warnings"] = warnings
    return msgspec.json.encode({"apiVersion": VERSION, "kind": "AdmissionReview", "response": response})


def _decided(declared: AppAdmission, request: _Request, warnings: list[str], cache: Cache) -> Mapping[str, Any]:
    user = request.user_info
    write = Write(
        request.operation,
        request.name,
        request.namespace,
        user.username,
        user.groups,
        None,
        bool(request.dry_run),
        warnings,
        cache,
    )
    new, old = _without_nulls(request.object), _without_nulls(request.old_object)
    if new is None and old is None:
        return _denied(400, "BadRequest", f"admission plugin {declared.name} needs an object, and the request has none")
    try:
        changed = decide(declared, new, old, write)
    except Refused as refusal:
        return _denied(403, "Forbidden", refusal_text(declared, refusal))
    except ApiError as error:
        return _denied(error.code, error.reason, str(error))
    except Exception as error:
        return _denied(500, "InternalError", str(failed(declared, error)))
    return {"allowed": True, **_patch([*difference(new, changed)])}


def _denied(code: int, reason: str, message: str) -> Mapping[str, Any]:
    return {"allowed": False, "status": {"code": code, "reason": reason, "message": message}}


def _patch(operations: list[dict[str, Any]]) -> Mapping[str, Any]:
    if not operations:
        return {}
    return {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(operations)).decode()}


def _without_nulls(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an object without nulls in its metadata; API servers before 1.34 send `creationTimestamp: null`."""
    if fields is None or not isinstance(fields.get("metadata"), dict):
        return fields
    metadata = {name: value for name, value in fields["metadata"].items() if value is not None}
    return {**fields, "metadata": metadata}

"""Converts objects by a webhook: sends the objects in a ConversionReview, and checks the response.

Guarantees: a converted object has the name, namespace, uid and all other metadata with which it was sent. The webhook
may change only labels and annotations of the metadata; any other change is a failure with a message. If the webhook
runs on simulated nodes, it is not called, and only the apiVersion of objects is changed, as with the strategy `None`.

Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ctrlmgr.api.field import FieldError, Path
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.calls.call import Call, Calling, CallInputs, CallOut, Reply
from ctrlmgr.engine.calls.endpoint import Endpoint, endpoint_of
from ctrlmgr.engine.calls.replies import is_success, unexpected
from ctrlmgr.engine.conversion import Converted
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.engine.validation.label_validation import validate_labels
from ctrlmgr.engine.validation.object_meta import validate_annotations
from ctrlmgr.errors import ConversionFailed
from ctrlmgr.extensions.definition import Conversion
from ctrlmgr.schema import strict_json
from ctrlmgr.schema.schema_pruning import json_kind

TIMEOUT: Final = 30.0
"""The timeout of a call to the webhook, in seconds."""
_GROUP = "apiextensions.k8s.io"
_KNOWN = ("v1", "v1beta1")

_encode = msgspec.json.Encoder().encode


class _Unusable(Exception):
    """Raised if a response, or an object in it, is invalid.

    The error for clients consists of `conversion webhook for KIND` and this error's message.
    """


class Webhook:
    """The conversion from one version of a kind to another by a webhook."""

    def __init__(self, conversion: Conversion, group: str, kind: str, source: str, target: str) -> None:
        """Create a conversion of objects of version `source` into `target`."""
        self._conversion = conversion
        self._kind = kind
        self._source = f"{group}/{source}, Kind={kind}"
        self._target = f"{group}/{target}"

    def convert(self, objects: Sequence[Unstructured], inputs: CallInputs) -> Calling[Sequence[Converted]]:
        """Return the converted object for each of the given objects, or its failure."""
        try:
            return (yield from self._convert(objects, inputs))
        except _Unusable as problem:
            return [ConversionFailed(self._source, str(problem))] * len(objects)

    def _convert(self, objects: Sequence[Unstructured], inputs: CallInputs) -> Calling[Sequence[Converted]]:
        endpoint = endpoint_of(self._conversion.client or {}, inputs.view, inputs.random)
        if endpoint.is_simulated:
            return [{**obj, "apiVersion": self._target} for obj in objects]
        version = next((each for each in self._conversion.review_versions if each in _KNOWN), None)
        if version is None:
            raise _Unusable("failed: no supported conversion review versions")
        uid = new_uid(inputs.random)
        request = {"uid": uid, "desiredAPIVersion": self._target, "objects": objects}
        review = {"kind": "ConversionReview", "apiVersion": f"{_GROUP}/{version}", "request": request}
        reply = yield from self._replied(_encode(review), endpoint)
        found = _objects(reply, uid, version)
        if len(found) != len(objects):
            raise _Unusable(f"returned {len(found)} objects, expected {len(objects)}")
        return [self._taken(obj, new, index) for index, (obj, new) in enumerate(zip(objects, found, strict=True))]

    def _replied(self, body: bytes, endpoint: Endpoint) -> Calling[Reply]:
        """Call the webhook; raises `_Unusable` if the call fails."""
        url = f"{endpoint.url}?timeout={TIMEOUT:g}s"
        problem = endpoint.problem
        if not problem:
            (reply,) = yield CallOut([Call(url, body, TIMEOUT, endpoint.ca_bundle, endpoint.address)])
            problem = reply.problem
        if problem:
            raise _Unusable(f'failed: Post "{url}": {problem}')
        if not is_success(reply):
            raise _Unusable(f"failed: {unexpected(reply)}")
        return reply

    def _taken(self, obj: Unstructured, new: Any, index: int) -> Converted:
        try:
            self._check_type(new, index)
            _check_identity(obj, new)
            return {**new, "metadata": _metadata(obj, new)}
        except _Unusable as problem:
            return ConversionFailed(self._source, str(problem))

    def _check_type(self, new: Any, index: int) -> None:
        invalid = f"returned invalid object at index {index}: invalid"
        if not isinstance(new, dict):
            raise _Unusable(f"{invalid} object (received {json_kind(new)})")
        for what, expected, received in (
            ("groupVersion", self._target, new.get("apiVersion") or ""),
            ("kind", self._kind, new.get("kind") or ""),
        ):
            if received != expected:
                raise _Unusable(f"{invalid} {what} (expected {expected}, received {received})")


def _objects(reply: Reply, uid: str, version: str) -> Sequence[Any]:
    """Return the objects in a response; raises `_Unusable` if the response is invalid."""
    try:
        review = strict_json.decode(reply.body)
    except ValueError as problem:
        raise _Unusable(f"failed: {problem}") from problem
    if not isinstance(review, dict):
        raise _Unusable(f"failed: json: cannot unmarshal {json_kind(review)} into Go value of type v1.ConversionReview")
    response = review.get("response")
    if version == "v1":
        expected = f"{_GROUP}/v1, Kind=ConversionReview"
        received = f"{review.get('apiVersion') or '/'}, Kind={review.get('kind') or ''}"
        if received != expected:
            raise _Unusable(f"failed: expected webhook response of {expected}, got {received}")
    if not isinstance(response, dict):
        raise _Unusable("failed: no response provided")
    if version == "v1" and response.get("uid") != uid:
        raise _Unusable(f'failed: expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    result = response.get("result") or {}
    if result.get("status") != "Success":
        message = f"response.result.status was '{result.get('status') or ''}', not 'Success'"
        raise _Unusable(f"failed: {result.get('message') or message}")
    return response.get("convertedObjects") or ()


def _check_identity(obj: Unstructured, new: Unstructured) -> None:
    before, after = _fields(obj), _fields(new)
    for field, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        one, other = before.get(field) or "", after.get(field) or ""
        if one != other:
            raise _Unusable(f"returned invalid object: must have the same {shown}: {one} != {other}")


def _fields(obj: Unstructured) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _metadata(obj: Unstructured, new: Unstructured) -> Unstructured:
    """Return the metadata with which an object was sent, with the labels and annotations of the response."""
    answered, metadata = new.get("metadata"), dict(obj.get("metadata") or {})
    if not isinstance(answered, dict):
        problem = "missing metadata" if answered is None else f"invalid metadata of type {json_kind(answered)}"
        raise _Unusable(f"returned invalid metadata: {problem} in converted object")
    for field in ("labels", "annotations"):
        given = answered.get(field)
        if given is None:
            metadata.pop(field, None)
            continue
        _check_texts(field, given, metadata.get(field))
        metadata[field] = given
    return metadata


def _check_texts(field: str, given: Any, before: Any) -> None:
    invalid = "returned invalid metadata:"
    if not isinstance(given, dict):
        raise _Unusable(f"{invalid} invalid metadata.{field} of type {json_kind(given)} in converted object")
    for key, value in given.items():
        if not isinstance(value, str):
            problem = f"metadata.{field}[{key}] must be a string, but is {json_kind(value)} in converted object"
            raise _Unusable(f"{invalid} {problem}")
    if given == (before or {}):
        return
    if field == "labels":
        errors = validate_labels(given, Path("metadata.labels"))
    else:
        errors = validate_annotations(given, Path("metadata.annotation"))
    if errors:
        raise _Unusable(f"{invalid} {_aggregated(errors)}")


def _aggregated(errors: Sequence[FieldError]) -> str:
    messages = list(dict.fromkeys(error.message for error in errors))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"

"""AdmissionReview: encodes the request to a webhook, and decodes the webhook's response.

Guarantees: a webhook sees the object in Kubernetes' encoding and in the version that its rules name. If a response has
another request's UID or content that this type of webhook may not return, the call counts as failed, and the response
is not a decision.

Rules come from apiserver's `pkg/admission/plugin/webhook/request/admissionreview.go`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.admission.webhooks.webhook_selection import Invocation
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.request_options import DeleteOptions

_GROUP = "admission.k8s.io"
_VERSIONS = ("v1", "v1beta1")
_OPTIONS = {Verb.CREATE: "CreateOptions", Verb.UPDATE: "UpdateOptions", Verb.DELETE: "DeleteOptions"}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Question(NamedTuple):
    """An AdmissionReview that is ready to be sent."""

    uid: str
    version: str
    body: bytes


class Verdict(NamedTuple):
    """The decision of a webhook about a write."""

    allowed: bool
    patch: bytes = b""
    patch_type: str = ""
    result: Mapping[str, Any] | None = None
    """The Status in the webhook's response, which has details about a refusal."""
    warnings: Sequence[str] = ()
    annotations: Mapping[str, str] = {}


class UnusableAnswer(Exception):
    """Raised if a webhook's response is invalid; the error message says why."""


def version_for(invocation: Invocation) -> str | None:
    """Return the first version of AdmissionReview that the webhook lists and ctrlmgr supports.

    The function returns None if the webhook accepts no version that this server sends.
    """
    return next((each for each in invocation.hook.versions if each in _VERSIONS), None)


def question(attributes: Attributes, invocation: Invocation, kinds: Kinds, uid: str, version: str) -> Question:
    """Return the AdmissionReview for a write."""
    request = {"uid": uid, **_what(attributes, invocation.kind)}
    request["object"] = shown(attributes, attributes.object, invocation.kind, kinds)
    request["oldObject"] = shown(attributes, attributes.old, invocation.kind, kinds)
    request["dryRun"] = attributes.dry_run
    request["options"] = _options(attributes)
    review = {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": request}
    return Question(uid, version, _encode(review))


def request_of(attributes: Attributes, kind: Kind) -> dict[str, Any]:
    """Return the attributes of a write without its objects, as a webhook for `kind` sees them."""
    return {**_what(attributes, kind), "dryRun": attributes.dry_run, "options": _options(attributes)}


def _what(attributes: Attributes, other: Kind) -> dict[str, Any]:
    request: dict[str, Any] = {}
    requested_kind = attributes.kind
    request["kind"] = _kind(_gvk(attributes, other))
    request["resource"] = _resource(other)
    if attributes.subresource:
        request["subResource"] = attributes.subresource
    request["requestKind"] = _kind(_gvk(attributes, requested_kind))
    request["requestResource"] = _resource(requested_kind)
    if attributes.subresource:
        request["requestSubResource"] = attributes.subresource
    if attributes.name:
        request["name"] = attributes.name
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    request["operation"] = str(attributes.operation)
    request["userInfo"] = _user(attributes)
    return request


def shown(attributes: Attributes, fields: Unstructured | None, kind: Kind, kinds: Kinds) -> Unstructured | None:
    """Return an object as webhooks see it, in the version of the given kind."""
    if fields is None:
        return None
    if attributes.operation is Verb.CONNECT:
        return dict(fields)  # the options of a connect request were created by the server, not decoded
    if attributes.body_kind is not None:
        data = kinds.codec_for(attributes.body_kind).encode(fields)
    else:
        data = (kinds.stored(kind.storage) or kind).codec.encode(fields)
        if kind.from_storage is not None:
            data = kind.from_storage(Object(kind.storage, data)).body
    seen: Unstructured = _decode(data)
    if version := (fields.get("metadata") or {}).get("resourceVersion"):
        seen["metadata"]["resourceVersion"] = version  # the stored object does not contain this field
    return seen


def _gvk(attributes: Attributes, kind: Kind) -> GroupVersionKind:
    return attributes.body_kind or kind.gvk


def _kind(gvk: GroupVersionKind) -> dict[str, str]:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(kind: Kind) -> dict[str, str]:
    return {"group": kind.resource.group, "version": kind.gvk.version, "resource": kind.resource.plural}


def _user(attributes: Attributes) -> dict[str, Any]:
    requester = attributes.requester
    user: dict[str, Any] = {"username": requester.user, "uid": requester.uid, "groups": list(requester.groups)}
    user["extra"] = {key: list(values) for key, values in requester.extra.items()}
    return {field: value for field, value in user.items() if value}


def _options(attributes: Attributes) -> dict[str, Any] | None:
    kind, given = _OPTIONS.get(attributes.operation), attributes.options
    if kind is None:
        return None
    options: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if isinstance(given, DeleteOptions):
        preconditions = {"uid": given.uid, "resourceVersion": given.resource_version}
        options |= {
            "gracePeriodSeconds": given.grace_period_seconds,
            "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
            "orphanDependents": given.orphan_dependents,
            "propagationPolicy": given.propagation_policy,
            "dryRun": list(given.dry_run) or None,
        }
    else:
        options |= {
            "dryRun": ["All"] if given.dry_run else None,
            "fieldManager": given.field_manager or None,
            "fieldValidation": given.given_validation or None,
        }
    return {field: value for field, value in options.items() if value is not None}


def read_verdict(asked: Question, body: bytes, *, mutates: bool) -> Verdict:
    """Return the decision in a webhook's response; raises `UnusableAnswer` if the response is invalid."""
    review = _decoded(body)
    name = f"{_GROUP}/{asked.version}, Kind=AdmissionReview"
    response = review.get("response")
    if not isinstance(response, dict):
        raise UnusableAnswer("webhook response was absent")
    if asked.version == "v1beta1":
        return _old_verdict(response, mutates=mutates)
    if response.get("uid") != asked.uid:
        raise UnusableAnswer(f'expected response.uid="{asked.uid}", got "{response.get("uid") or ""}"')
    found = f"{review.get('apiVersion') or ''}, Kind={review.get('kind') or ''}"
    if found != name:
        raise UnusableAnswer(f"expected webhook response of {name}, got {found}")
    patch, patch_type = _patch(response), response.get("patchType")
    if mutates:
        _check_patch(patch, patch_type)
    elif patch:
        raise UnusableAnswer("validating webhook may not return response.patch")
    elif patch_type is not None:
        raise UnusableAnswer("validating webhook may not return response.patchType")
    return _verdict(response, patch, patch_type or "")


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        review = msgspec.json.decode(body)
    except msgspec.DecodeError as problem:
        raise UnusableAnswer(f"couldn't get version/kind; json parse error: {problem}") from problem
    if not isinstance(review, dict):
        raise UnusableAnswer("couldn't get version/kind; json parse error: not an object")
    for field in ("kind", "apiVersion"):
        if not review.get(field):
            raise UnusableAnswer(
                f"Object '{field.title().replace('v', 'V')}' is missing in '{body.decode(errors='replace')[:200]}'"
            )
    group, _, version = str(review["apiVersion"]).rpartition("/")
    if group != _GROUP or version not in _VERSIONS or review["kind"] != "AdmissionReview":
        known = f'no kind "{review["kind"]}" is registered for version "{review["apiVersion"]}"'
        raise UnusableAnswer(f"{known} in scheme")
    return review


def _patch(response: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(response.get("patch") or "", validate=True)
    except (binascii.Error, TypeError, ValueError) as problem:
        raise UnusableAnswer(f"illegal base64 data in response.patch: {problem}") from problem


def _check_patch(patch: bytes, patch_type: Any) -> None:
    if patch and patch_type is None:
        raise UnusableAnswer("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise UnusableAnswer("webhook returned response.patchType but not response.patch")
    if patch_type is not None and not patch_type:
        raise UnusableAnswer('webhook returned invalid response.patchType of ""')


def _old_verdict(response: Mapping[str, Any], *, mutates: bool) -> Verdict:
    """Decode a response in the version v1beta1, which must meet fewer requirements than a response in v1."""
    patch = _patch(response) if mutates else b""
    return _verdict(response, patch, "JSONPatch" if patch else "")


def _verdict(response: Mapping[str, Any], patch: bytes, patch_type: str) -> Verdict:
    return Verdict(
        bool(response.get("allowed")),
        patch,
        patch_type,
        response.get("status"),
        [str(each) for each in response.get("warnings") or ()],
        {str(key): str(value) for key, value in (response.get("auditAnnotations") or {}).items()},
    )

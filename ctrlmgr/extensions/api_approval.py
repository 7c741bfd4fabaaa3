"""The annotation `api-approved.kubernetes.io`, which CustomResourceDefinitions in Kubernetes' own groups must have.

Source: apiextensions-apiserver `pkg/apihelpers/helpers.go`, `pkg/controller/apiapproval`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.extensions.structural import Raw
from ctrlmgr.golang import go_url
from ctrlmgr.golang.go_text import quote

ANNOTATION: Final = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


class _State(NamedTuple):
    status: str
    reason: str
    message: str


def is_protected(group: str) -> bool:
    """Return whether an API group is protected, because it belongs to Kubernetes."""
    return any(group == each or group.endswith(f".{each}") for each in _PROTECTED)


def _annotations(definition: Raw) -> Mapping[str, str]:
    return (definition.get("metadata") or {}).get("annotations") or {}


def _state(definition: Raw) -> _State:
    annotation = _annotations(definition).get(ANNOTATION, "")
    if not annotation:
        return _State(
            "False", "MissingAnnotation", f'protected groups must have approval annotation "{ANNOTATION}", {_SEE}'
        )
    if annotation.startswith("unapproved"):
        return _State("False", "UnapprovedAnnotation", f"not approved: {quote(annotation)}")
    if _is_url(annotation):
        return _State("True", "ApprovedAnnotation", f"approved in {annotation}")
    form = 'with either a URL or a reason starting with "unapproved"'
    message = f'protected groups must have approval annotation "{ANNOTATION}" {form}, {_SEE}'
    return _State("False", "InvalidAnnotation", message)


def _is_url(text: str) -> bool:
    try:
        url = go_url.parse_request_uri(text)
    except ValueError:
        return False
    return bool(url.host and url.scheme)


def condition(definition: Raw) -> dict[str, str] | None:
    """Return the condition KubernetesAPIApprovalPolicyConformant without timestamps.

    The function returns None if the group is not protected.
    """
    if not is_protected((definition.get("spec") or {}).get("group") or ""):
        return None
    return {"type": "KubernetesAPIApprovalPolicyConformant", **_state(definition)._asdict()}


def approval_errors(new: Raw, old: Raw | None) -> list[FieldError]:
    """Return the errors in the approval annotation.

    An update that does not change the state of the annotation causes no errors.
    """
    if not is_protected((new.get("spec") or {}).get("group") or ""):
        return []
    state = _state(new)
    if old is not None and _state(old).reason == state.reason:
        return []
    path = Path("metadata").child("annotations").key(ANNOTATION)
    if state.reason == "MissingAnnotation":
        return [required(path, state.message)]
    if state.reason == "InvalidAnnotation":
        return [invalid(path, _annotations(new)[ANNOTATION], state.message)]
    return []

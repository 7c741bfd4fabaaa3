"""The pod annotations that Kubernetes interprets, for mirror pods, deletion costs, seccomp and AppArmor.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `ValidatePodSpecificAnnotations` and
`ValidatePodSpecificAnnotationUpdates`, and `pkg/registry/core/pod/strategy.go`, `applyAppArmorVersionSkew`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ctrlmgr.api.field import ROOT, FieldError, Path, forbidden, invalid, tentatively
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.kinds.core.pod.defaults import containers_of
from ctrlmgr.kinds.core.pod.scheduling import validate_tolerations
from ctrlmgr.kinds.core.pod.security import validate_apparmor
from ctrlmgr.kinds.core.volume_sources import descending_path
from ctrlmgr.schema import strict_json
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema import Schema
from ctrlmgr.schema.schema_pruning import json_kind, prune

MIRROR = "kubernetes.io/config.mirror"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_PROFILES = ("runtime/default", "docker/default", "unconfined")
_INT32 = re.compile(r"(-[0-9]+|0|[1-9][0-9]*)")
_LOCALHOST = "localhost/"
_MUST_MATCH = "{} {} in annotation and field must match"


def validate_pod_annotations(
    annotations: Mapping[str, str], spec: Mapping[str, Any], path: Path, *, any_cost: bool = False
) -> list[FieldError]:
    """Validate the annotations of a pod or a pod template.

    If `any_cost` is set, the deletion cost need not be a number.
    """
    errors: list[FieldError] = []
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(path.key(MIRROR), annotations[MIRROR], detail))
    if tolerations := annotations.get(TOLERATIONS):
        errors += _validate_tolerations(tolerations, path)
    if not any_cost and not is_cost(cost := annotations.get(DELETION_COST)):
        errors.append(invalid(path.key(DELETION_COST), cost, "must be a 32bit integer"))
    for key in sorted(annotations, key=lambda each: (each != SECCOMP_POD, each)):
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            errors += _validate_seccomp(annotations[key], path.child(key))
    apparmor = sorted(key for key in annotations if key.startswith(APPARMOR))
    if apparmor:
        containers = frozenset(each.get("name") or "" for _, _, each in containers_of(dict(spec)))
        for key in apparmor:
            errors += _validate_apparmor(key, annotations[key], containers, path.key(key))
    return errors


def is_cost(cost: str | None) -> bool:
    """Return whether the annotation for the pod deletion cost is absent or a number.

    Source: Kubernetes `GetDeletionCostFromPodAnnotations`.
    """
    return cost is None or bool(_INT32.fullmatch(cost) and len(cost) < 12 and -(2**31) <= int(cost) < 2**31)


def _validate_tolerations(text: str, path: Path) -> list[FieldError]:
    try:
        tolerations = [prune(_toleration(), each)[0] for each in _decode_list(text)]
    except ValueError as error:
        return [invalid(path, TOLERATIONS, str(error))]
    return validate_tolerations(tolerations, path.child(TOLERATIONS))


def _decode_list(text: str) -> list[dict[str, Any]]:
    found = strict_json.decode(text.encode())
    if found is None:
        return []
    if not isinstance(found, list):
        raise ValueError(f"json: cannot unmarshal {json_kind(found)} into Go value of type []v1.Toleration")
    for each in found:
        if not isinstance(each, dict):
            raise ValueError(f"json: cannot unmarshal {json_kind(each)} into Go value of type v1.Toleration")
    return found


@cache
def _toleration() -> Schema:
    return Definitions.builtin().schema("io.k8s.api.core.v1.Toleration")


def _validate_seccomp(profile: str, path: Path) -> list[FieldError]:
    if profile in _SECCOMP_PROFILES:
        return []
    if profile.startswith(_LOCALHOST):
        return descending_path(profile.removeprefix(_LOCALHOST), path)
    return [invalid(path, profile, "must be a valid seccomp profile")]


def _validate_apparmor(key: str, profile: str, containers: frozenset[str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    name = key.removeprefix(APPARMOR)
    if name not in containers:
        errors.append(invalid(path, name, "container not found"))
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCALHOST):
        errors.append(invalid(path, profile, f'invalid AppArmor profile name: "{profile}"'))
    return errors


def validate_annotations_agree(annotations: Mapping[str, str], spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate that the old annotations of a new pod agree with the fields that replace them.

    `path` is the path of the pod's spec.
    """
    if not any(key == SECCOMP_POD or key.startswith((SECCOMP_CONTAINER, APPARMOR)) for key in annotations):
        return []
    of_pod = spec.get("securityContext") or {}
    errors = _disagreement("seccomp", of_pod, annotations.get(SECCOMP_POD), path)
    containers = [
        (each.get("name") or "", each.get("securityContext") or {}, path.child(kind).at(index))
        for kind, index, each in containers_of(dict(spec))
    ]
    for name, context, below in containers:
        errors += _disagreement("seccomp", context, annotations.get(SECCOMP_CONTAINER + name), below)
    for name, context, below in containers if (spec.get("os") or {}).get("name") != "windows" else ():
        either = context if context.get("appArmorProfile") is not None else of_pod
        errors += _disagreement("apparmor", either, annotations.get(APPARMOR + name), below)
    return errors


def _disagreement(what: str, context: Mapping[str, Any], annotation: str | None, path: Path) -> list[FieldError]:
    field = "seccompProfile" if what == "seccomp" else "appArmorProfile"
    profile = context.get(field)
    if profile is None or annotation is None:
        return []
    below = path.child("securityContext", field)
    kind = profile.get("type")
    if kind == "Localhost":
        if not annotation.startswith(_LOCALHOST):
            return [forbidden(below.child("type"), _MUST_MATCH.format(what, "type"))]
        if annotation.removeprefix(_LOCALHOST) != profile.get("localhostProfile"):
            return [forbidden(below.child("localhostProfile"), _MUST_MATCH.format(what, "profile"))]
        return []
    default = ("runtime/default", "docker/default") if what == "seccomp" else ("runtime/default",)
    expected = {"Unconfined": ("unconfined",), "RuntimeDefault": default}
    if kind not in expected or annotation in expected[kind]:
        return []
    return [forbidden(below.child("type"), _MUST_MATCH.format(what, "type"))]


def validate_annotation_update(new: Unstructured, old: Unstructured, path: Path) -> list[FieldError]:
    """Validate the annotations of an updated pod, and validate that annotations for kubelets are unchanged."""
    after, before = ((each.get("metadata") or {}).get("annotations") or {} for each in (new, old))
    if not after and not before:
        return []
    errors: list[FieldError] = []
    for key in sorted(before):
        if after.get(key) != before[key]:
            if key.startswith(APPARMOR):
                errors.append(forbidden(path.key(key), "may not remove or update AppArmor annotations"))
            if key == MIRROR:
                errors.append(forbidden(path.key(key), "may not remove or update mirror pod annotation"))
    for key in sorted(after.keys() - before.keys()):
        if key.startswith(APPARMOR):
            errors.append(forbidden(path.key(key), "may not add AppArmor annotations"))
        if key == MIRROR:
            errors.append(forbidden(path.key(key), "may not add mirror pod annotation"))
    any_cost = not is_cost(before.get(DELETION_COST))
    return errors + validate_pod_annotations(after, new.get("spec") or {}, path, any_cost=any_cost)


def apply_apparmor_annotations(pod: dict[str, Any]) -> list[str]:
    """Set the fields of a new pod that its AppArmor annotations describe, in place; return the warnings (KEP-24)."""
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    spec = pod.get("spec") or {}
    warnings: list[str] = []
    if not any(key.startswith(APPARMOR) for key in annotations) or (spec.get("os") or {}).get("name") == "windows":
        return warnings
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for _, _, container in containers_of(spec):
        key = APPARMOR + (container.get("name") or "")
        context = container.get("securityContext") or {}
        if key not in annotations or context.get("appArmorProfile") is not None:
            continue
        profile = apparmor_field(annotations[key])
        if profile is not None and tentatively(_check(profile)):
            profile = None
        if profile is not None and profile == of_pod:
            continue
        if profile is not None:
            container["securityContext"] = {**context, "appArmorProfile": profile}
        at = Path("metadata.annotations").key(key)
        warnings.append(f'{at}: deprecated since v1.30; use the "appArmorProfile" field instead')
    return warnings


def apparmor_field(annotation: str) -> dict[str, str] | None:
    """Return the AppArmor profile of an annotation; None if the annotation is empty or has an unknown value."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    local = annotation.removeprefix(_LOCALHOST) if annotation.startswith(_LOCALHOST) else ""
    return {"type": "Localhost", "localhostProfile": local} if local else None


def _check(profile: dict[str, str]) -> Callable[[], list[FieldError]]:
    return lambda: validate_apparmor(profile, ROOT)

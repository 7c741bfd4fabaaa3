"""Validates updates of pod specs through writes to the pod, to `/ephemeralcontainers` and to `/resize`.

Guarantees: an update changes only the fields that are mutable in a write to this (sub)resource.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `ValidatePodUpdate`, `ValidatePodEphemeralContainersUpdate`
and `ValidatePodResize`, and `pkg/registry/core/pod/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, required
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.core.pod.annotations import MIRROR, validate_annotation_update
from ctrlmgr.kinds.core.pod.scheduling import REQUIRED, validate_tolerations
from ctrlmgr.kinds.core.pod.validation import ANNOTATIONS, LONGEST, SPEC, validate_pod
from ctrlmgr.kinds.spec_difference import difference, shown, with_empties

_UPDATABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)


_TERM = "NodeSelectorTerm"


def validate_pod_update(new: Unstructured, old: Unstructured, sent: Callable[[], Any]) -> list[FieldError]:
    """Validate an update of a pod, except its status.

    The function `sent` returns the spec in the body of a PUT request.
    """
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors = validate_pod(new) + validate_annotation_update(new, old, ANNOTATIONS)
    for field in ("containers", "initContainers"):
        containers = spec.get(field) or ()
        if len(containers) != len(before.get(field) or ()):
            return [*errors, forbidden(SPEC.child(field), "pod updates may not add or remove containers")]
        errors += _validate_images(containers, SPEC.child(field))
    found, stop = _validate_deadline(spec, before)
    errors += found
    if stop:
        return errors
    errors += _validate_tolerations(spec, before)
    errors += _validate_gates(spec, before)
    if is_same(spec, before):
        return errors
    reverted, found = _reverted(spec, before)
    errors += found
    if not is_same(reverted, before):
        differs = difference("PodSpec", before, _as_sent(reverted, before, sent()))
        errors.append(forbidden(SPEC, f"pod updates may not change fields other than {_UPDATABLE}\n{differs}"))
    return errors


def _as_sent(reverted: Mapping[str, Any], before: Mapping[str, Any], spec: Any) -> dict[str, Any]:
    """Return the pod spec with the empty values of the request's body, except in fields that were reverted."""
    if not isinstance(spec, dict):
        return dict(reverted)
    kept = {"containers", "initContainers", "schedulingGates", "tolerations"}
    kept |= {"nodeSelector", "affinity"} if before.get("schedulingGates") else set()
    spec = {name: value for name, value in spec.items() if value or name not in kept}
    found = with_empties(reverted, spec)
    for field in ("containers", "initContainers"):
        for container in found.get(field) or ():
            resources = container.get("resources") or {}
            # If the limits are empty, the requests are not nil, because their defaults are the limits.
            if resources.get("limits") == {}:
                resources.setdefault("requests", {})
    return found


def is_same(spec: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Return whether two pod specs are equal (`Semantic.DeepEqual`); amounts may have different notations."""
    return spec == before or _read(spec) == _read(before)


def _read(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod spec in which amounts are replaced by numbers."""
    read: dict[str, Any] = _with_amounts(dict(spec))
    if overhead := spec.get("overhead"):
        read["overhead"] = {name: parse(amount) for name, amount in overhead.items()}
    for field in ("containers", "initContainers", "ephemeralContainers"):
        if field in spec:
            read[field] = [_with_amounts(each) for each in spec[field]]
    return read


def _with_amounts(owner: dict[str, Any]) -> dict[str, Any]:
    resources = owner.get("resources")
    if not resources:
        return owner
    amounts = {
        field: {name: parse(amount) for name, amount in resources[field].items()}
        for field in ("limits", "requests")
        if resources.get(field)
    }
    return {**owner, "resources": {**resources, **amounts}}


def _validate_images(containers: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, container in enumerate(containers):
        image = container.get("image") or ""
        if not image:
            errors.append(required(path.at(index).child("image")))
        elif image != image.strip():
            detail = "must not have leading or trailing whitespace"
            errors.append(invalid(path.at(index).child("image"), image, detail))
    return errors


def _validate_deadline(spec: Mapping[str, Any], before: Mapping[str, Any]) -> tuple[list[FieldError], bool]:
    """Return the errors of activeDeadlineSeconds, and whether the validation must end with these errors."""
    path = SPEC.child("activeDeadlineSeconds")
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if new is None:
        detail = "must not update from a positive integer to nil value"
        return ([] if old is None else [invalid(path, None, detail)]), False
    if not 0 <= new <= LONGEST:
        return [invalid(path, new, name_formats.out_of_range(0, LONGEST))], True
    if old is not None and old < new:
        return [invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _validate_tolerations(spec: Mapping[str, Any], before: Mapping[str, Any]) -> list[FieldError]:
    path = SPEC.child("tolerations")
    new, old = spec.get("tolerations") or (), before.get("tolerations") or ()
    kept = [_without_seconds(each) for each in new]
    if not all(_without_seconds(each) in kept for each in old):
        return [forbidden(path, "existing toleration can not be modified except its tolerationSeconds")]
    return validate_tolerations(new, path)


def _without_seconds(toleration: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in toleration.items() if field != "tolerationSeconds"}


def _validate_gates(spec: Mapping[str, Any], before: Mapping[str, Any]) -> list[FieldError]:
    known = {each.get("name") for each in before.get("schedulingGates") or ()}
    added = {each.get("name"): index for index, each in enumerate(spec.get("schedulingGates") or ())}
    path = SPEC.child("schedulingGates")
    return [
        forbidden(
            path.at(index).child("name"),
            f"only deletion is allowed, but found new scheduling gate '{name or ''}'",
        )
        for name, index in added.items()
        if name not in known
    ]


def _reverted(spec: Mapping[str, Any], before: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldError]]:
    """Return the new pod spec with all mutable fields reverted, and the errors of the changes to mutable fields."""
    reverted = dict(spec)
    fields = ["activeDeadlineSeconds", "schedulingGates", "tolerations"]
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        fields.append("terminationGracePeriodSeconds")
    errors: list[FieldError] = []
    if before.get("schedulingGates"):
        errors += _validate_node_selector(spec, before)
        fields.append("nodeSelector")
        if _node_affinity(spec) != _node_affinity(before):
            errors += _validate_node_affinity(spec, before)
            _set(reverted, "affinity", _with_node_affinity(spec.get("affinity"), before.get("affinity")))
    for field in fields:
        _set(reverted, field, before.get(field))
    for field in ("containers", "initContainers"):
        if spec.get(field):
            reverted[field] = [_with_image(*pair) for pair in zip(spec[field], before[field], strict=True)]
    return reverted, errors


def _set(fields: dict[str, Any], field: str, value: Any) -> None:
    if value is None:
        fields.pop(field, None)
    else:
        fields[field] = value


def _with_image(container: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    reverted = dict(container)
    _set(reverted, "image", before.get("image"))
    return reverted


def _validate_node_selector(spec: Mapping[str, Any], before: Mapping[str, Any]) -> list[FieldError]:
    new, old = spec.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if old.items() <= new.items():
        return []
    detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [invalid(SPEC.child("nodeSelector"), new or None, detail)]


def _node_affinity(spec: Mapping[str, Any]) -> dict[str, Any] | None:
    affinity: dict[str, Any] | None = (spec.get("affinity") or {}).get("nodeAffinity")
    return affinity


def _validate_node_affinity(spec: Mapping[str, Any], before: Mapping[str, Any]) -> list[FieldError]:
    new, old = _node_terms(spec), _node_terms(before)
    path = SPEC.child("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    if old and len(old) != len(new):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(path, [shown(_TERM, each) for each in new] or None, detail)]
    return [
        invalid(path.at(index), shown(_TERM, new[index]), "only additions are allowed (no mutations or deletions)")
        for index, term in enumerate(old)
        if not _only_adds(new[index], term)
    ]


def _node_terms(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    affinity = _node_affinity(spec) or {}
    terms: list[dict[str, Any]] = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    return terms


def _only_adds(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        return not any(new.get(field) for field in fields)
    return all((new.get(field) or [])[: len(old.get(field) or [])] == (old.get(field) or []) for field in fields)


def _with_node_affinity(new: dict[str, Any] | None, old: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the new affinity of a pod with the old node affinity.

    Return None if the new affinity is empty and the old pod had no affinity.
    """
    node = (old or {}).get("nodeAffinity")
    if new is None:
        return None if node is None else {"nodeAffinity": node}
    others = {field: value for field, value in new.items() if field != "nodeAffinity"}
    if node is not None:
        return {"nodeAffinity": node, **others}
    return None if old is None and not others else others


def validate_ephemeral_update(new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Validate a write to `/ephemeralcontainers`, which may only add containers."""
    if MIRROR in ((old.get("metadata") or {}).get("annotations") or {}):
        return [forbidden("[]", "static pods do not support ephemeral containers")]
    errors = validate_pod(new) + validate_annotation_update(new, old, ANNOTATIONS)
    path = SPEC.child("ephemeralContainers")
    after = {each.get("name"): each for each in (new.get("spec") or {}).get("ephemeralContainers") or ()}
    for container in (old.get("spec") or {}).get("ephemeralContainers") or ():
        name = container.get("name") or ""
        if name not in after:
            errors.append(forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n'))
        elif after[name] != container:
            differs = difference("EphemeralContainer", container, after[name])
            errors.append(forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n{differs}'))
    return errors


def keep_all_but_ephemeral(new: Unstructured, old: Unstructured) -> None:
    """Revert, in place, all changes of a write to `/ephemeralcontainers` except the ephemeral containers."""
    spec = dict(old.get("spec") or {})
    _set(spec, "ephemeralContainers", (new.get("spec") or {}).get("ephemeralContainers"))
    new["spec"] = spec
    keep_all_but_spec(new, old)


def keep_all_but_spec(new: Unstructured, old: Unstructured) -> None:
    """Revert, in place, the changes of a pod's status and metadata (`ResetObjectMetaForStatus`)."""
    _set(new, "status", old.get("status"))
    for field in ("labels", "annotations", "ownerReferences", "finalizers"):
        _set(metadata_of(new), field, metadata_of(old).get(field))

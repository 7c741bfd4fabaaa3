"""Copies fields that admission set in recorded pods to the replay's pods, because a replay runs no admission.

Admission sets the ServiceAccount of a new pod, and adds a volume with its token under a random name. The controller
that creates the pod writes neither of these fields. Therefore the pods that ctrlmgr's controllers create get the fields
that admission set from the recorded pods. Source: Kubernetes' `plugin/pkg/admission/serviceaccount`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.object import Object

_VOLUME: Final = "kube-api-access-"
_ACCOUNT: Final = ("serviceAccountName", "serviceAccount", "imagePullSecrets")


def with_account(ours: Object, recorded: Object) -> Object:
    """Return the replay's pod with the ServiceAccount and the token volume of the recorded pod."""
    fields, given = ours.to_dict(), recorded.to_dict().get("spec") or {}
    spec = fields.get("spec") or {}
    account = {name: given[name] for name in _ACCOUNT if name in given and not spec.get(name)}
    volumes = [each for each in given.get("volumes") or () if _is_token(each)]
    if not account and not volumes:
        return ours
    spec = {**spec, **account}
    if volumes and not any(map(_is_token, spec.get("volumes") or ())):
        spec["volumes"] = [*(spec.get("volumes") or ()), *volumes]
        for field in ("initContainers", "containers"):
            if spec.get(field):
                spec[field] = _with_mounts(spec[field], given.get(field) or ())
    return Object.from_dict({**fields, "spec": spec}).at(ours.revision)


def _with_mounts(ours: Any, given: Any) -> list[dict[str, Any]]:
    """Return containers with the token mounts of the recorded containers that have the same names."""
    mounts = {each["name"]: [one for one in each.get("volumeMounts") or () if _is_token(one)] for each in given}
    return [
        {**each, "volumeMounts": [*(each.get("volumeMounts") or ()), *mounts[each["name"]]]}
        if mounts.get(each["name"])
        else each
        for each in ours
    ]


def _is_token(item: Mapping[str, Any]) -> bool:
    return str(item.get("name", "")).startswith(_VOLUME)

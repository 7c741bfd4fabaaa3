"""The identity of a StatefulSet's pods: names, ordinals, labels and claims.

Source: Kubernetes' `pkg/controller/statefulset/stateful_set_utils.go`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.statefulset.view import API_VERSION, KIND, StatefulSet
from ctrlmgr.controllers.workloads.controller_ref_manager import Owner
from ctrlmgr.controllers.workloads.pod_control import pod_from_template

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
REVISION: Final = "controller-revision-hash"

_NAME: Final = re.compile(r"(.*)-([0-9]+)", re.ASCII | re.DOTALL)
_LARGEST: Final = 2**31 - 1


def ordinal_of(pod: Object) -> int:
    """Return the ordinal in a pod's name; -1 if the name has no ordinal."""
    match = _NAME.fullmatch(pod.name)
    ordinal = int(match[2]) if match else -1
    return ordinal if ordinal <= _LARGEST else -1


def is_member(stateful_set: Object, pod: Object) -> bool:
    """Return whether a pod has a name that the StatefulSet gives to its pods."""
    match = _NAME.fullmatch(pod.name)
    return match is not None and match[1] == stateful_set.name


def revision_of(pod: Object) -> str:
    """Return the name of the revision from which a pod was created."""
    return pod.labels.get(REVISION, "")


def claim_name(template: Mapping[str, Any], stateful_set: Object, ordinal: int) -> str:
    """Return the name of a pod's claim."""
    return f"{template['metadata']['name']}-{stateful_set.name}-{ordinal}"


def new_pod(stateful_set: Object, template: Mapping[str, Any], ordinal: int, revision: str) -> Object:
    """Return a new pod with an ordinal, from the template of a revision."""
    view = stateful_set.view(StatefulSet)
    name = f"{stateful_set.name}-{ordinal}"
    pod = pod_from_template(template, Owner(stateful_set, API_VERSION, KIND), name=name)
    identity = {POD_NAME: name, POD_INDEX: str(ordinal), REVISION: revision}
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **identity}
    pod["spec"] |= {"hostname": name, "subdomain": view.spec.service_name}
    volumes = volumes_of(stateful_set, ordinal, pod["spec"].get("volumes") or ())
    if volumes:
        pod["spec"]["volumes"] = volumes
    return Object.from_dict(pod)


def volumes_of(stateful_set: Object, ordinal: int, volumes: Any) -> list[dict[str, Any]]:
    """Return the volumes of a pod; the volumes of its claims replace other volumes with the same name."""
    templates = stateful_set.view(StatefulSet).claim_templates
    claimed = {
        each["metadata"]["name"]: {
            "name": each["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(each, stateful_set, ordinal)},
        }
        for each in templates
    }
    return [*claimed.values(), *(each for each in volumes if each["name"] not in claimed)]


def new_claims(stateful_set: Object, ordinal: int) -> list[Object]:
    """Return the claims of a pod, with the labels of the StatefulSet's selector."""
    view = stateful_set.view(StatefulSet)
    labels = view.spec.selector.get("matchLabels") or {}
    found = []
    for template in view.claim_templates:
        given = template.get("metadata") or {}
        kept = {key: given[key] for key in ("annotations", "finalizers") if given.get(key)}
        metadata = {
            "name": claim_name(template, stateful_set, ordinal),
            "namespace": stateful_set.namespace,
            "labels": {**(given.get("labels") or {}), **labels},
            **kept,
        }
        head = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": metadata}
        found.append(Object.from_dict({**head, "spec": template.get("spec") or {}}))
    return found


def has_identity(stateful_set: Object, pod: Object) -> bool:
    """Return whether a pod has the name and the label that its ordinal requires."""
    ordinal = ordinal_of(pod)
    is_named = ordinal >= 0 and pod.name == f"{stateful_set.name}-{ordinal}"
    return is_named and pod.labels.get(POD_NAME) == pod.name


def has_storage(stateful_set: Object, pod: Object) -> bool:
    """Return whether a pod has a volume for each of its claims."""
    templates = stateful_set.view(StatefulSet).claim_templates
    if not templates:
        return True
    volumes = {each["name"]: each for each in pod.to_dict()["spec"].get("volumes") or ()}
    desired = {each["metadata"]["name"]: claim_name(each, stateful_set, ordinal_of(pod)) for each in templates}
    return all(
        (volumes.get(name, {}).get("persistentVolumeClaim") or {}).get("claimName") == claim
        for name, claim in desired.items()
    )


def identified(stateful_set: Object, pod: Object) -> Object:
    """Return a copy of a pod with the labels and volumes that its ordinal requires."""
    fields, ordinal = pod.to_dict(), ordinal_of(pod)
    fields["metadata"]["labels"] = {**(pod.labels or {}), POD_NAME: pod.name, POD_INDEX: str(ordinal)}
    if not has_storage(stateful_set, pod):
        fields["spec"]["volumes"] = volumes_of(stateful_set, ordinal, fields["spec"].get("volumes") or ())
    return Object.from_dict(fields)

"""Tables of refused objects with their error messages: one file per kind, one block per case.

A file starts with the URL path of the kind (`apps/v1/deployments`). A block consists of these lines:

    # its name, unique in its file
    + a JSON merge patch (RFC 7396) of the kind's valid object (`VALID`); the result is created
    +container a patch for its first container instead
    > a patch of the created object; the result is written as an update
    >status a patch for its subresource `status` instead
    @ the name of a feature gate that is on for the case
    the path of a field: the error message

`pod_recorded.txt` contains recorded responses of Kubernetes 1.36.2; the expectations in the other files follow
Kubernetes' source code.

If a block has no error messages, the object must be accepted. A block may have several lines of each type: patches are
applied one after the other (only the last update may be refused), and the errors must occur in the order of the lines.
`<LABEL>` and similar placeholders stand for Kubernetes' longer explanations, `\\n` and `\\t` for white space.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.kinds.stage import merged

FOLDER = Path(__file__).parent
WORDS = {
    "<LABEL>": (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    ),
    "<SUBDOMAIN>": (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    ),
    "<VALUE>": (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    ),
    "<PERCENT>": (
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used "
        "for validation is '[0-9]+%')"
    ),
    "<KEY>": (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    ),
}

_POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example.invalid/c:1"}]}
_LABELS = {"a": "b"}
_SELECTOR = {"matchLabels": _LABELS}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": {"containers": _POD["containers"]}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
_ROLE = {"kind": "ClusterRole", "name": "x"}
_INGRESS = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
_VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
_REQUESTS = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}}
_SLICE = {"driver": "d.x", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}}
_STORAGE = "storage.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io/v1"

VALID: dict[str, dict[str, Any]] = {
    "v1/pods": {"spec": {"nodeName": "n", **_POD}},
    "v1/podtemplates": {"template": _TEMPLATE},
    "v1/replicationcontrollers": {"spec": {"template": _TEMPLATE}},
    "v1/persistentvolumes": {"spec": _VOLUME},
    "v1/persistentvolumeclaims": {"spec": _CLAIM},
    "apps/v1/deployments": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "apps/v1/replicasets": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "apps/v1/daemonsets": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "apps/v1/statefulsets": {
        "spec": {
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": _CLAIM}],
        }
    },
    "apps/v1/controllerrevisions": {"data": {"a": 1}, "revision": 1},
    "batch/v1/jobs": {"spec": {"template": {"spec": _POD}}},
    "batch/v1/cronjobs": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": _POD}}}}},
    "autoscaling/v2/horizontalpodautoscalers": {"spec": {"maxReplicas": 3, "scaleTargetRef": _TARGET}},
    "networking.k8s.io/v1/ingresses": {"spec": _INGRESS},
    "networking.k8s.io/v1/networkpolicies": {"spec": {"podSelector": {}}},
    "policy/v1/poddisruptionbudgets": {"spec": {"minAvailable": 1}},
    "resource.k8s.io/v1/deviceclasses": {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    "resource.k8s.io/v1/resourceclaims": {"spec": _REQUESTS},
    "resource.k8s.io/v1/resourceclaimtemplates": {"spec": {"spec": _REQUESTS}},
    "resource.k8s.io/v1/resourceslices": {"spec": _SLICE},
    f"{_STORAGE}/csidrivers": {"spec": {}},
    f"{_STORAGE}/csinodes": {"spec": {"drivers": [{"name": "d.x", "nodeID": "i"}]}},
    f"{_STORAGE}/csistoragecapacities": {"storageClassName": "c", "nodeTopology": {"matchLabels": {"a": "b"}}},
    f"{_STORAGE}/storageclasses": {"provisioner": "d.x", "parameters": {"a": "b"}},
    f"{_STORAGE}/volumeattachments": {
        "spec": {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}
    },
    f"{_STORAGE}/volumeattributesclasses": {"driverName": "d.x", "parameters": {"a": "b"}},
    f"{_RBAC}/roles": {"rules": [_RULE]},
    f"{_RBAC}/clusterroles": {"rules": [_RULE]},
    f"{_RBAC}/rolebindings": {"roleRef": _ROLE},
    f"{_RBAC}/clusterrolebindings": {"roleRef": _ROLE},
}
"""The minimal valid object of each kind, by the kind's path; tests must not change these objects."""


class Change(NamedTuple):
    """A patch of an object; `part` is the subresource that the patch changes, or "container" for
    the first container.
    """

    part: str
    patch: dict[str, Any]


class Case(NamedTuple):
    """One case in a table of refusals."""

    kind: str
    create: list[Change]
    updates: list[Change]
    causes: list[str]
    gates: list[str]


def cases() -> dict[str, Case]:
    """Return all cases, each with the name of the file that contains it."""
    files = sorted(FOLDER.glob("*.txt"))
    return {f"{file.stem}: {name}": case for file in files for name, case in _read(file.read_text("utf-8"))}


def _read(text: str) -> Iterator[tuple[str, Case]]:
    kind, *blocks = text.split("\n\n")
    for block in blocks:
        name, *lines = block.strip().splitlines()
        case = Case(kind.strip(), [], [], [], [])
        for line in lines:
            if line[0] == "@":
                case.gates.append(line[1:].strip())
            elif line[0] in "+>":
                part, _, patch = line[1:].partition(" ")
                (case.create if line[0] == "+" else case.updates).append(Change(part, json.loads(patch)))
            else:
                case.causes.append(_spelled_out(line))
        yield name.removeprefix("# "), case


def _spelled_out(line: str) -> str:
    for short, long in WORDS.items():
        line = line.replace(short, long)
    return line.replace("\\n", "\n").replace("\\t", "\t")


def patched(fields: dict[str, Any], change: Change) -> dict[str, Any]:
    """Return a copy of an object, or of the object's first container, after a change."""
    fields = copy.deepcopy(fields)
    if change.part != "container":
        changed: dict[str, Any] = merged(fields, change.patch)
        return changed
    containers = fields["spec"]["containers"]
    containers[0] = merged(containers[0], change.patch)
    return fields

"""Pure decisions about writes of nodes: each function returns the reason for a refusal, or an empty string.

Source: `plugin/pkg/admission/noderestriction/admission.go`, kubelet's `pkg/apis/well_known_labels.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authorization.node.references import MIRROR, api_reference

_OWN_LABELS: Final = frozenset(
    {
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
_OWN_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED: Final = "node-restriction.kubernetes.io"
_SYSTEM: Final = ("kubernetes.io", "k8s.io")

_CLAIM_STATUS: Final = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")
"""The fields in the status of a PersistentVolumeClaim that nodes may write."""

_MIGRATED: Final = {
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "portworxVolume": "pxd.portworx.com",
    "vsphereVolume": "csi.vsphere.vmware.com",
}
"""The CSI driver that replaces each in-tree volume source (csi-translation-lib)."""


def mirror_pod_problem(node: str, pod: Unstructured, uid: str | None) -> str:
    """Return the reason why a node may not create this pod; an empty string if the node may create it.

    `uid` is the UID of the node, or None if the node does not exist.
    """
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    if MIRROR not in (metadata.get("annotations") or {}):
        return f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
    if spec.get("nodeName") != node:
        return f'node "{node}" can only create pods with spec.nodeName set to itself'
    return _owners_problem(node, metadata.get("ownerReferences") or (), uid) or _references_problem(node, spec)


def _owners_problem(node: str, owners: Any, uid: str | None) -> str:
    if len(owners) > 1:
        return f'node "{node}" can only create pods with a single owner reference set to itself'
    owner: Mapping[str, Any] = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        return f'node "{node}" can only create pods with an owner reference set to itself'
    if not owner.get("controller"):
        return f'node "{node}" can only create pods with a controller owner reference set to itself'
    if owner.get("blockOwnerDeletion"):
        return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
    if uid is not None and owner.get("uid") != uid:
        return f"node {node} UID mismatch: expected {owner.get('uid') or ''} got {uid}"
    return ""


def _references_problem(node: str, spec: Mapping[str, Any]) -> str:
    try:
        what = api_reference(spec)
    except ValueError as problem:
        return str(problem)
    return f'node "{node}" can not create pods that reference {what}' if what else ""


def pod_status_problem(node: str, new: Unstructured, old: Unstructured) -> str:
    """Return the reason why a node may not write this pod status; an empty string if the node may write it."""
    if not is_on(old, node):
        return f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
    if _labels(new) != _labels(old):
        return f'node "{node}" cannot update labels through pod status'
    if _status(new, "resourceClaimStatuses") != _status(old, "resourceClaimStatuses"):
        return f'node "{node}" cannot update resource claim statues'
    if _status(new, "extendedResourceClaimStatus") != _status(old, "extendedResourceClaimStatus"):
        return f'node "{node}" cannot update extended resource claim status'
    return ""


def node_problem(node: str, new: Unstructured, old: Unstructured | None) -> str:
    """Return the reason why a node may not write its own Node object in this way; empty if the write is allowed."""
    spec = new.get("spec") or {}
    forbidden = ", ".join(sorted(filter(_is_foreign_label, _differing(_labels(new), _labels(old or {})))))
    if old is None:
        if spec.get("configSource") is not None:
            return f'node "{node}" is not allowed to create pods with a non-nil configSource'
        return f'node "{node}" is not allowed to set the following labels: {forbidden}' if forbidden else ""
    before = old.get("spec") or {}
    if spec.get("configSource") is not None and spec["configSource"] != before.get("configSource"):
        return f'node "{node}" is not allowed to update configSource to a new non-nil configSource'
    if (spec.get("taints") or []) != (before.get("taints") or []):
        return f'node "{node}" is not allowed to modify taints'
    if _owners(new) != _owners(old):
        return f'node "{node}" is not allowed to modify ownerReferences'
    return f"is not allowed to modify labels: {forbidden}" if forbidden else ""


def claim_status_problem(node: str, new: Unstructured, old: Unstructured) -> str:
    """Return the reason why a node may not write this status of a claim; an empty string if the write is allowed."""
    if _claim_without_own(new) == _claim_without_own(old):
        return ""
    return f'node "{node}" is not allowed to update fields other than status.quantity and status.conditions'


def token_problem(node: str, reference: Mapping[str, Any], pod: Unstructured | None) -> str:
    """Return the reason why a node may not get a token that is bound to `reference`; empty if the node may get it.

    The protection of the Lease is not a plugin, so it cannot be disabled.
    """
    if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod") or not reference.get("name"):
        return "node requested token not bound to a pod"
    uid = reference.get("uid")
    if not uid:
        return "node requested token with a pod binding without a uid"
    if pod is None:
        return ""
    if uid != (pod.get("metadata") or {}).get("uid"):
        return (
            f"the UID in the bound object reference ({uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
    return "" if is_on(pod, node) else "node requested token bound to a pod scheduled on a different node"


def other_node_problem(node: str, spec: Mapping[str, Any]) -> str:
    """Return an error if a request for a pod's certificate names another node; otherwise ""."""
    named = spec.get("nodeName") or ""
    if named == node:
        return ""
    return f'PodCertificateRequest.Spec.NodeName="{named}", which is not the requesting node "{node}"'


def node_uid_problem(pod: str, spec: Mapping[str, Any], node: Unstructured) -> str:
    """Return an error if a PodCertificateRequest for `pod` has a wrong uid of the node; otherwise ""."""
    named, uid = spec.get("nodeUID") or "", _uid(node)
    if named == uid:
        return ""
    where = f'PodCertificateRequest for pod "{pod}"'
    return f'{where} names node UID "{named}", inconsistent with the running node ("{uid}")'


def pod_uid_problem(pod: str, spec: Mapping[str, Any], found: Unstructured) -> str:
    """Return an error if a PodCertificateRequest for `pod` has a wrong uid of the pod; otherwise ""."""
    named, uid = spec.get("podUID") or "", _uid(found)
    if named == uid:
        return ""
    where = f'PodCertificateRequest for pod "{pod}"'
    return f'{where} contains pod UID ("{named}") which differs from running pod "{uid}"'


def pod_request_problem(pod: str, spec: Mapping[str, Any], found: Unstructured) -> str:
    """Return an error if the stored pod is on another node, is a mirror pod or has another account; otherwise ""."""
    node, account = spec.get("nodeName") or "", spec.get("serviceAccountName") or ""
    own = (found.get("spec") or {}).get("serviceAccountName") or ""
    if not is_on(found, node):
        return f'pod "{pod}" is not running on node "{node}" named in the PodCertificateRequest'
    if MIRROR in ((found.get("metadata") or {}).get("annotations") or {}):
        return f'pod "{pod}" is a mirror pod'
    if account == own:
        return ""
    where = f'PodCertificateRequest for pod "{pod}"'
    return f'{where} contains serviceAccountName ("{account}") that differs from running pod ("{own}")'


def account_uid_problem(pod: str, spec: Mapping[str, Any], account: Unstructured) -> str:
    """Return an error if a PodCertificateRequest for `pod` has a wrong uid of the account; otherwise ""."""
    named, uid = spec.get("serviceAccountUID") or "", _uid(account)
    if named == uid:
        return ""
    where = f'PodCertificateRequest for pod "{pod}"'
    return f'{where} names service account UID "{named}", which differs from the running service account ("{uid}")'


def mounts_token_for(pod: Unstructured, audience: str) -> bool:
    """Return whether a pod mounts a service account token for an audience."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            token = source.get("serviceAccountToken")
            if token is not None and (token.get("audience") or "") == audience:
                return True
    return False


def inline_driver(source: Mapping[str, Any]) -> str:
    """Return the CSI driver of a pod's volume or of a PersistentVolume's spec; empty if neither uses a CSI driver."""
    driver: str = (source.get("csi") or {}).get("driver") or ""
    migrated = (name for field, name in _MIGRATED.items() if source.get(field) is not None)
    return driver or next(migrated, "")


def claims_of(pod: Unstructured) -> Iterator[str]:
    """Yield the names of the claims that a pod's volumes use, including the generated claims of ephemeral volumes."""
    name = (pod.get("metadata") or {}).get("name") or ""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if volume.get("persistentVolumeClaim") is not None:
            yield volume["persistentVolumeClaim"].get("claimName") or ""
        elif volume.get("ephemeral") is not None:
            yield f"{name}-{volume.get('name')}"


def is_on(obj: Unstructured, node: str) -> bool:
    """Return whether a pod or a ResourceSlice belongs to a node."""
    return ((obj.get("spec") or {}).get("nodeName") or "") == node


def _uid(obj: Unstructured) -> str:
    return str((obj.get("metadata") or {}).get("uid") or "")


def _is_foreign_label(label: str) -> bool:
    domain, slash, _ = label.partition("/")
    if not slash:
        return False
    if _is_within(domain, _RESTRICTED):
        return True
    if not any(_is_within(domain, system) for system in _SYSTEM):
        return False
    return label not in _OWN_LABELS and not any(_is_within(domain, own) for own in _OWN_DOMAINS)


def _is_within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def _differing(new: Mapping[str, str], old: Mapping[str, str]) -> Iterator[str]:
    return (label for label in new.keys() | old.keys() if new.get(label) != old.get(label))


def _labels(obj: Unstructured) -> Mapping[str, str]:
    labels: Mapping[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    return labels


def _owners(obj: Unstructured) -> Any:
    return (obj.get("metadata") or {}).get("ownerReferences") or []


def _status(obj: Unstructured, field: str) -> Any:
    return (obj.get("status") or {}).get(field) or None


def _claim_without_own(claim: Unstructured) -> Unstructured:
    metadata = {**(claim.get("metadata") or {}), "resourceVersion": None, "managedFields": None}
    status = {name: value for name, value in (claim.get("status") or {}).items() if name not in _CLAIM_STATUS}
    return {**claim, "metadata": metadata, "status": status}

"""The references of pods and volumes: the secrets, config maps, claims and service accounts that a kubelet needs.

Source: `pkg/api/pod/util.go`, `pkg/api/v1/pod/util.go`, `pkg/api/v1/persistentvolume/util.go`,
dynamic-resource-allocation `resourceclaim`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.unstructured import Unstructured, metadata_of

MIRROR = "kubernetes.io/config.mirror"

SECRET = "secret"  # this is the name of a kind, not a password
CONFIG_MAP = "configmap"
CLAIM = "persistentvolumeclaim"
ACCOUNT = "serviceaccount"
RESOURCE_CLAIM = "resourceclaim"

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_VOLUME_SECRETS = (
    ("azureFile", "secretName"),
    ("secret", "secretName"),
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("flexVolume", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("iscsi", "secretRef"),
    ("storageos", "secretRef"),
    ("csi", "nodePublishSecretRef"),
)
"""The fields of a pod's volumes that name secrets, as pairs: the volume source, and the field in the source."""

_PERSISTENT_SECRETS = (
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("flexVolume", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("iscsi", "secretRef"),
    ("storageos", "secretRef"),
    ("csi", "nodePublishSecretRef"),
    ("csi", "nodeStageSecretRef"),
    ("csi", "nodeExpandSecretRef"),
)
"""The fields of a persistent volume that name secrets for kubelets."""


class Reference(NamedTuple):
    """A reference of a pod or volume to an object."""

    kind: str
    namespace: str
    name: str


def pod_references(pod: Unstructured) -> Iterator[Reference]:
    """Yield references to the objects that a node may read because of a pod.

    A mirror pod gives its node no right to read objects.
    """
    metadata, spec = metadata_of(pod), pod.get("spec") or {}
    if MIRROR in (metadata.get("annotations") or {}):
        return
    namespace = metadata.get("namespace") or ""
    if account := spec.get("serviceAccountName"):
        yield Reference(ACCOUNT, namespace, account)
    for name in secret_names(spec):
        yield Reference(SECRET, namespace, name)
    for name in config_map_names(spec):
        yield Reference(CONFIG_MAP, namespace, name)
    for name in _claim_names(metadata.get("name") or "", spec):
        yield Reference(CLAIM, namespace, name)
    for name in _resource_claim_names(pod):
        yield Reference(RESOURCE_CLAIM, namespace, name)


def secret_names(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the secrets that a pod's spec names."""
    for pull in spec.get("imagePullSecrets") or ():
        yield from _name(pull)
    for container in _containers(spec):
        yield from _from_environment(container, "secretRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        for source, field in _VOLUME_SECRETS:
            yield from _name((volume.get(source) or {}).get(field))
        yield from _from_projected(volume, "secret")


def config_map_names(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the config maps that a pod's spec names."""
    for container in _containers(spec):
        yield from _from_environment(container, "configMapRef", "configMapKeyRef")
    for volume in spec.get("volumes") or ():
        yield from _name(volume.get("configMap"))
        yield from _from_projected(volume, "configMap")


_OWN_VOLUMES = (
    *("awsElasticBlockStore", "azureDisk", "cephfs", "cinder", "downwardAPI", "emptyDir", "fc", "flexVolume"),
    *("flocker", "gcePersistentDisk", "gitRepo", "hostPath", "image", "iscsi", "nfs", "photonPersistentDisk"),
    *("portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume"),
)
"""The volume sources that refer to no API object."""
_API_VOLUMES = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_API_PROJECTIONS = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def api_reference(spec: Mapping[str, Any]) -> str:
    """Return the plural of the first API resource to which a pod's spec refers; empty if the spec refers to none.

    Raises ValueError if a volume has an unknown type. Source: `HasAPIObjectReference`, `pkg/api/pod/util.go`.
    """
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if any(True for _ in secret_names(spec)):
        return "secrets"
    if any(True for _ in config_map_names(spec)):
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    return next(filter(None, map(_volume_reference, spec.get("volumes") or ())), "")


def _volume_reference(volume: Mapping[str, Any]) -> str:
    given = {source for source, value in volume.items() if value is not None}
    if not given.isdisjoint(_OWN_VOLUMES):
        return ""
    for source, what in _API_VOLUMES.items():
        if source in given:
            return what
    name = volume.get("name") or ""
    if "projected" not in given:
        raise ValueError(f'unknown volume type for volume  "{name}"')
    return next(
        filter(None, (_projected_reference(each, name) for each in volume["projected"].get("sources") or ())), ""
    )


def _projected_reference(source: Mapping[str, Any], volume: str) -> str:
    for field, what in _API_PROJECTIONS.items():
        if source.get(field) is not None:
            return what
    if source.get("downwardAPI") is None:
        raise ValueError(f'unknown source for projected volume "{volume}"')
    return ""


def volume_secrets(volume: Unstructured) -> Iterator[Reference]:
    """Yield the secrets that a persistent volume needs on the nodes whose pods use the volume."""
    spec = volume.get("spec") or {}
    home = (spec.get("claimRef") or {}).get("namespace") or ""
    azure = spec.get("azureFile") or {}
    if name := azure.get("secretName"):
        yield Reference(SECRET, azure.get("secretNamespace") or home, name)
    for source, field in _PERSISTENT_SECRETS:
        reference = (spec.get(source) or {}).get(field) or {}
        if name := reference.get("name"):
            yield Reference(SECRET, reference.get("namespace") or home, name)


def _containers(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for field in _CONTAINERS:
        yield from spec.get(field) or ()


def _from_environment(container: Mapping[str, Any], whole: str, key: str) -> Iterator[str]:
    for source in container.get("envFrom") or ():
        yield from _name(source.get(whole))
    for variable in container.get("env") or ():
        yield from _name((variable.get("valueFrom") or {}).get(key))


def _from_projected(volume: Mapping[str, Any], kind: str) -> Iterator[str]:
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from _name(source.get(kind))


def _name(reference: Mapping[str, Any] | str | None) -> Iterator[str]:
    name = reference if isinstance(reference, str) else (reference or {}).get("name")
    if name:
        yield name


def _claim_names(pod: str, spec: Mapping[str, Any]) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        if volume.get("persistentVolumeClaim") is not None:
            yield from _name(volume["persistentVolumeClaim"].get("claimName"))
        elif volume.get("ephemeral") is not None:
            yield f"{pod}-{volume.get('name')}"


def _resource_claim_names(pod: Unstructured) -> Iterator[str]:
    status = pod.get("status") or {}
    generated: Sequence[Mapping[str, Any]] = status.get("resourceClaimStatuses") or ()
    for claim in (pod.get("spec") or {}).get("resourceClaims") or ():
        name = claim.get("resourceClaimName")
        if not name and claim.get("resourceClaimTemplateName"):
            made = (each for each in generated if each.get("name") == claim.get("name"))
            name = next((each.get("resourceClaimName") for each in made), None)
        yield from _name(name)
    yield from _name((status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"))

"""Validates volumes of pods; each volume must have a unique name and one complete source.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `ValidateVolumes` and the functions that it calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required, too_long
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_selector, validate_labels
from ctrlmgr.engine.validation.object_meta import ANNOTATIONS_SIZE, validate_annotations
from ctrlmgr.kinds.common_rules import domain_prefixed_key, each_problem
from ctrlmgr.kinds.core.claim_spec import validate_claim_spec
from ctrlmgr.kinds.core.pod.downward_api import (
    VOLUME_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from ctrlmgr.kinds.core.pod.volumes.defaults import TOKEN_SOURCE
from ctrlmgr.kinds.core.volume_sources import (
    ONLY_ONE,
    SOURCES,
    Source,
    unreserved_path,
    validate_items,
    validate_mode,
)
from ctrlmgr.kinds.signers import is_kubernetes_signer, validate_signer_name, validate_trust_bundle_name
from ctrlmgr.kinds.spec_difference import shown

_CONFLICT = "conflicting duplicate paths"
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 1 << 32
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_KEY_TYPES = ("ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096")


def validate_volumes(
    volumes: Sequence[Mapping[str, Any]], pod_name: str, path: Path, *, is_pod: bool
) -> tuple[dict[str, Source], list[FieldError]]:
    """Return the valid volumes by name, and the errors of the invalid volumes.

    In pod templates, `pod_name` is empty, because in templates the claims of ephemeral volumes have no names yet.
    """
    errors: list[FieldError] = []
    usable: dict[str, Source] = {}
    made = {f"{pod_name}-{each.get('name')}" for each in volumes if pod_name and each.get("ephemeral") is not None}
    for index, volume in enumerate(volumes):
        at = path.at(index)
        name = volume.get("name") or ""
        found = _validate_source(volume, name, pod_name, at, is_pod)
        found += (
            each_problem(name_formats.dns1123_label, name, at.child("name")) if name else [required(at.child("name"))]
        )
        if name in usable:
            found.append(duplicate(at.child("name"), name))
        if not found:
            usable[name] = volume
        errors += found
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(at.child("persistentVolumeClaim", "claimName"), claim, detail))
    return usable, errors


def _validate_source(volume: Source, name: str, pod_name: str, path: Path, is_pod: bool) -> list[FieldError]:
    if len(volume) == 2 and volume.get("projected") == TOKEN_SOURCE:
        return []
    given = [field for field in _ORDER if volume.get(field) is not None]
    if not given:
        return [required(path, "must specify a volume type")]
    errors = _validate_first(given[0], volume, name, pod_name, path, is_pod)
    errors += _validate_iscsi_name(volume.get("iscsi"), name, path)
    for field in given[1:]:
        label = SOURCES[field][0] if field in SOURCES else _POD_SOURCES[field]
        errors.append(forbidden(path.child(label), ONLY_ONE))
    return errors


def _validate_first(field: str, volume: Source, name: str, pod_name: str, path: Path, is_pod: bool) -> list[FieldError]:
    source = volume[field]
    if field in SOURCES:
        _, label, check = SOURCES[field]
        return check(source, path.child(label))
    if field == "downwardAPI":
        return validate_mode(source, "defaultMode", path.child(field)) + _validate_files(source, path.child(field))
    if field == "projected":
        return _validate_projected(source, path.child(field))
    if field == "ephemeral":
        return _validate_ephemeral(source, name, pod_name, path)
    return _validate_image(source, path.child(field), is_pod)


def _validate_iscsi_name(source: Source | None, name: str, path: Path) -> list[FieldError]:
    if source is None or source.get("initiatorName") is None:
        return []
    if name_formats.length(f"{name}:{source.get('targetPortal') or ''}") <= _LONGEST_ISCSI_NAME:
        return []
    limit = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters"
    return [invalid(path.child("name"), name, f"{limit} if iscsi.initiatorName is specified.")]


_LONGEST_ISCSI_NAME = 64
_POD_SOURCES = {
    "downwardAPI": "downwarAPI",
    "projected": "projected",
    "ephemeral": "ephemeral",
    "image": "image",
}
"""The volume sources that only the volumes of pods have, keyed by field, with their names in "more than one" errors.
Kubernetes misspells one of these names.
"""
_ORDER = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc"),
    *("flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume"),
    *("azureDisk", "storageos", "projected", "scaleIO", "csi", "ephemeral", "image"),
)
"""All volume sources in the order of Kubernetes' checks. If a volume has several sources, only the first source is
validated.
"""


def _validate_files(source: Source, path: Path) -> list[FieldError]:
    return [error for file in source.get("items") or () for error in _validate_file(file, path)]


def _validate_file(file: Source, path: Path) -> list[FieldError]:
    target = file.get("path") or ""
    errors = [] if target else [required(path.child("path"))]
    errors += unreserved_path(target, path.child("path"))
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        errors += validate_field_reference(field, VOLUME_FIELDS, path.child("fieldRef"))
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", detail))
    elif resource is not None:
        errors += validate_resource_reference(resource, path.child("resourceFieldRef"), named=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + validate_mode(file, "mode", path)


def _validate_projected(source: Source, path: Path) -> list[FieldError]:
    errors = validate_mode(source, "defaultMode", path)
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        at = path.child("sources").at(index)
        given = [field for field in _PROJECTIONS if projection.get(field) is not None]
        for field in given:
            errors += _validate_projection(field, projection[field], at.child(field), path)
            errors += _conflicts(field, projection[field], taken, path)
        if len(given) > 1:
            errors.append(forbidden(at, "may not specify more than 1 volume type per source"))
    return errors


_PROJECTIONS = ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")


def _validate_projection(field: str, source: Source, path: Path, volume_path: Path) -> list[FieldError]:
    if field == "downwardAPI":
        return _validate_files(source, path)
    if field == "serviceAccountToken":
        return _validate_token(source, path, volume_path)
    if field == "clusterTrustBundle":
        return _validate_trust_bundle(source, path)
    if field == "podCertificate":
        return _validate_certificate(source, path)
    return ([] if source.get("name") else [required(path.child("name"))]) + validate_items(source, path)


def _conflicts(field: str, source: Source, taken: set[str], path: Path) -> list[FieldError]:
    """Return an error for each file that is already in an earlier projection of the volume; record the other files."""
    errors: list[FieldError] = []
    if field == "clusterTrustBundle":
        targets = [source.get("path") or ""]
    elif field == "podCertificate":
        targets = [source[each] for each in _CERTIFICATE_PATHS if source.get(each)]
    else:
        targets = [each["path"] for each in source.get("items") or () if each.get("path")]
    for target in targets:
        if target in taken:
            named = source.get("name") or "" if field in ("secret", "configMap") else target
            errors.append(invalid(path, named, _CONFLICT))
        taken.add(target)
    return errors


def _validate_token(source: Source, path: Path, volume_path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seconds = source.get("expirationSeconds") or 0
    if seconds < _SHORTEST_TOKEN:
        detail = "may not specify a duration less than 10 minutes"
        errors.append(invalid(path.child("expirationSeconds"), seconds, detail))
    if seconds > _LONGEST_TOKEN:
        detail = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(path.child("expirationSeconds"), seconds, detail))
    if not source.get("path"):
        errors.append(required(volume_path.child("path")))
    else:
        errors += unreserved_path(source["path"], volume_path.child("path"))
    return errors


def _validate_trust_bundle(source: Source, path: Path) -> list[FieldError]:
    name, signer, selector = source.get("name"), source.get("signerName"), source.get("labelSelector")
    errors: list[FieldError] = []
    if name is not None and signer is not None:
        value = shown("ClusterTrustBundleProjection", source)
        errors.append(invalid(path, value, "only one of name and signerName may be used"))
    elif name is not None:
        if not name:
            errors.append(required(path.child("name"), "must be a valid object name"))
        errors += validate_trust_bundle_name(name, path.child("name"))
        if selector is not None:
            detail = "labelSelector must be unset if name is specified"
            errors.append(invalid(path.child("labelSelector"), selector, detail))
    elif signer is not None:
        if not signer:
            errors.append(required(path.child("signerName"), "must be a valid signer name"))
        errors += validate_signer_name(signer, path.child("signerName"))
        errors += validate_label_selector(selector, path.child("labelSelector"))
    else:
        errors.append(required(path, "either name or signerName must be specified"))
    target = source.get("path") or ""
    errors += [] if target else [required(path.child("path"))]
    return errors + unreserved_path(target, path.child("path"))


_CERTIFICATE_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")
_SHORTEST_CERTIFICATE = 3600
_LONGEST_CERTIFICATE = 91 * 86400
_LONGEST_OF_KUBERNETES = 86400
"""The maximum lifetime of certificates from Kubernetes' own signers, in seconds."""


def _validate_certificate(source: Source, path: Path) -> list[FieldError]:
    signer = source.get("signerName") or ""
    errors = validate_signer_name(signer, path.child("signerName"))
    if (key_type := source.get("keyType") or "") not in _KEY_TYPES:
        errors.append(not_supported(path.child("keyType"), key_type, _KEY_TYPES))
    if (seconds := source.get("maxExpirationSeconds")) is not None:
        errors += _validate_lifetime(seconds, signer, path.child("maxExpirationSeconds"))
    errors += _validate_user_annotations(source.get("userAnnotations") or {}, path.child("userAnnotations"))
    targets = [field for field in _CERTIFICATE_PATHS if source.get(field)]
    for field in targets:
        errors += unreserved_path(source[field], path.child(field))
    if not targets:
        detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errors.append(required(path, detail))
    return errors


def _validate_user_annotations(annotations: Mapping[str, str], path: Path) -> list[FieldError]:
    errors = [error for key in sorted(annotations) for error in domain_prefixed_key(key.lower(), path)]
    size = sum(name_formats.length(key) + name_formats.length(value) for key, value in annotations.items())
    return [*errors, too_long(path, ANNOTATIONS_SIZE)] if size > ANNOTATIONS_SIZE else errors


def _validate_lifetime(seconds: int, signer: str, path: Path) -> list[FieldError]:
    most = _LONGEST_OF_KUBERNETES if is_kubernetes_signer(signer) else _LONGEST_CERTIFICATE
    errors: list[FieldError] = []
    if seconds < _SHORTEST_CERTIFICATE:
        detail = f"if provided, maxExpirationSeconds must be >= {_SHORTEST_CERTIFICATE}"
        errors.append(invalid(path, seconds, detail))
    if seconds > most:
        errors.append(invalid(path, seconds, f"if provided, maxExpirationSeconds must be <= {most}"))
    return errors


def _validate_ephemeral(source: Source, name: str, pod_name: str, path: Path) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    below = path.child("ephemeral", "volumeClaimTemplate")
    if template is None:
        errors = [required(below)]
    else:
        errors = validate_template_metadata(template.get("metadata") or {}, below.child("metadata"))
        errors += validate_claim_spec(template.get("spec") or {}, below.child("spec"))
    if pod_name and name:
        claim = f"{pod_name}-{name}"
        problems = name_formats.dns1123_subdomain(claim)
        errors += [invalid(path.child("name"), name, f'PVC name "{claim}": {each}') for each in problems]
    return errors


def validate_template_metadata(metadata: Source, path: Path) -> list[FieldError]:
    """Validate the metadata of a volume claim template (`ValidateTemplateObjectMeta`)."""
    errors = validate_annotations(metadata.get("annotations") or {}, path.child("annotations"))
    errors += validate_labels(metadata.get("labels") or {}, path.child("labels"))
    others = [field for field, value in metadata.items() if value and field not in ("annotations", "labels")]
    return errors + [forbidden(path.child(field), "cannot be set") for field in others]


def _validate_image(source: Source, path: Path, is_pod: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if is_pod and not source.get("reference"):
        errors.append(required(path.child("reference")))
    return errors + validate_pull_policy(source.get("pullPolicy") or "", path.child("pullPolicy"))


def validate_pull_policy(policy: str, path: Path) -> list[FieldError]:
    """Validate the pull policy of an image volume."""
    if policy in PULL_POLICIES:
        return []
    return [not_supported(path, policy, PULL_POLICIES) if policy else required(path)]

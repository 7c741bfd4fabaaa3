"""The defaults of volumes, and the volume that contains the token of a pod's service account.

Guarantees: the defaults are set in place. If the defaults are already set, the functions change nothing.

Source: Kubernetes `pkg/apis/core/v1/{defaults,zz_generated.defaults}.go` and, for the token's volume,
`plugin/pkg/admission/serviceaccount/admission.go` (`TokenVolumeSource`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ctrlmgr.kinds.core.pod.image_name import pull_policy

FILE_MODE = 0o644
TOKEN_VOLUME: Final = "kube-api-access-"
"""The name prefix of the volume that contains a service account's token."""
_ABSENT: tuple[Any, ...] = (None, "")


def default_volume(volume: dict[str, Any]) -> None:
    """Set the defaults of one volume; a volume without a source becomes an emptyDir volume."""
    found = False
    for field, source in volume.items():
        if field != "name" and source is not None:
            found = True
            if default := _DEFAULTS.get(field):
                default(source)
    if not found:
        volume["emptyDir"] = {}


def default_claim_spec(spec: dict[str, Any]) -> None:
    """Set the defaults of a PersistentVolumeClaimSpec."""
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"


def _fill(values: Mapping[str, Any]) -> Callable[[dict[str, Any]], None]:
    def default(source: dict[str, Any]) -> None:
        for field, value in values.items():
            if source.get(field) in _ABSENT:
                source[field] = value

    return default


def _default_mode(source: dict[str, Any]) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = FILE_MODE


def _default_downward_api(source: dict[str, Any]) -> None:
    _default_mode(source)
    _default_files(source)


def _default_files(source: dict[str, Any]) -> None:
    for file in source.get("items") or ():
        if (reference := file.get("fieldRef")) and not reference.get("apiVersion"):
            reference["apiVersion"] = "v1"


def _default_projected(source: dict[str, Any]) -> None:
    _default_mode(source)
    for projection in source.get("sources") or ():
        _default_files(projection.get("downwardAPI") or {})
        token = projection.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = 3600


def _default_host_path(source: dict[str, Any]) -> None:
    if source.get("type") is None:
        source["type"] = ""


def _default_ephemeral(source: dict[str, Any]) -> None:
    if (template := source.get("volumeClaimTemplate")) is not None:
        default_claim_spec(template.setdefault("spec", {}))


def _default_image(source: dict[str, Any]) -> None:
    if not source.get("pullPolicy"):
        source["pullPolicy"] = pull_policy(source.get("reference") or "")


_DEFAULTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "secret": _default_mode,
    "configMap": _default_mode,
    "downwardAPI": _default_downward_api,
    "projected": _default_projected,
    "hostPath": _default_host_path,
    "ephemeral": _default_ephemeral,
    "image": _default_image,
    "iscsi": _fill({"iscsiInterface": "default"}),
    "rbd": _fill({"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
    "azureDisk": _fill({"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}),
    "scaleIO": _fill({"storageMode": "ThinProvisioned", "fsType": "xfs"}),
}
"""The functions that set defaults, by type of volume source. PersistentVolumes also have some of these types."""


def default_volume_source(spec: dict[str, Any]) -> None:
    """Set the defaults of the volume source in a PersistentVolume's spec."""
    for field, default in _DEFAULTS.items():
        if spec.get(field) is not None:
            default(spec[field])


def token_source() -> dict[str, Any]:
    """Return the volume source (a projected volume) that contains a service account's token."""
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            # The TokenRequest API recognizes this number of seconds, and concludes that the pod did not request the
            # token itself.
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": 0o644,
    }


TOKEN_SOURCE: Final = token_source()
"""The volume source that contains a service account's token, as a constant. A volume source that equals this constant
is valid and need not be validated.
"""

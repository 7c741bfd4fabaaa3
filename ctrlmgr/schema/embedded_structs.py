"""Lists the structs that Kubernetes' Go types embed, because Go's decoding errors name the embedded structs.

Source: Go's `encoding/json` (`decodeState.object`, the field stack of errors) and the fields of the types of
`k8s.io/api` that are `json:",inline"`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple


class _Embedded(NamedTuple):
    """An embedded struct, and the fields of the outer struct that the embedded struct does not contain."""

    name: str
    beside: frozenset[str]


def _table(name: str, outer: Mapping[str, str]) -> dict[str, _Embedded]:
    return {each: _Embedded(name, frozenset(beside.split())) for each, beside in outer.items()}


_EMBEDDED: Final[Mapping[str, _Embedded]] = {
    **_table("VolumeSource", {"Volume": "name"}),
    **_table(
        "ProbeHandler",
        {
            "Probe": """initialDelaySeconds timeoutSeconds periodSeconds successThreshold
                                          failureThreshold terminationGracePeriodSeconds"""
        },
    ),
    **_table("EphemeralContainerCommon", {"EphemeralContainer": "targetContainerName"}),
    **_table(
        "PersistentVolumeSource",
        {
            "PersistentVolumeSpec": """capacity accessModes claimRef mountOptions nodeAffinity
                                          persistentVolumeReclaimPolicy storageClassName volumeMode
                                          volumeAttributesClassName"""
        },
    ),
    **_table(
        "LocalObjectReference",
        {
            "ConfigMapVolumeSource": "items defaultMode optional",
            "ConfigMapProjection": "items optional",
            "SecretProjection": "items optional",
            "ConfigMapKeySelector": "key optional",
            "SecretKeySelector": "key optional",
            "ConfigMapEnvSource": "optional",
            "SecretEnvSource": "optional",
        },
    ),
    **_table("IngressRuleValue", {"IngressRule": "host"}),
    **_table(
        "DeviceConfiguration",
        {
            "DeviceClassConfiguration": "",
            "DeviceClaimConfiguration": "requests",
            "DeviceAllocationConfiguration": "source requests",
        },
    ),
    **_table("Rule", {"RuleWithOperations": "operations"}),
    **_table("RuleWithOperations", {"NamedRuleWithOperations": "resourceNames"}),
}
"""The struct that a type embeds, by the type's name.

No type embeds more than one struct, except for the struct with kind and apiVersion.
"""


def embedding(struct: str, field: str) -> Sequence[str]:
    """Return the embedded structs that contain `field` of `struct`, beginning with the outermost.

    Most fields belong to no embedded struct, so the result is usually empty.
    """
    found: list[str] = []
    while (embedded := _EMBEDDED.get(struct)) is not None and field not in embedded.beside:
        found.append(embedded.name)
        struct = embedded.name
    return found

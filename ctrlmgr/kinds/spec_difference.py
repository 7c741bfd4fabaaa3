"""Computes the line-by-line difference of two specs for Kubernetes' errors about immutable fields.

Kubernetes writes both specs as indented JSON of its internal Go types and compares the lines. The JSON of an internal
Go type contains every field with its Go name. Most internal types are equal to the published types. This module
declares how the API's types differ from the internal types.

Source: apimachinery `pkg/util/diff/diff.go` (`Diff`), Kubernetes `pkg/apis/core/{types,v1/conversion}.go`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from ctrlmgr.schema.published_schema import GoField, go, go_fields

_CORE: Final = "io.k8s.api.core.v1."
_GROUPS: Final = (
    _CORE,
    *(f"io.k8s.api.{group}.v1." for group in ("batch", "flowcontrol", "admissionregistration", "resource", "storage")),
)
"""The prefixes of the names of published Go types."""
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CONTEXT: Final = 3
"""The number of unchanged lines that are shown before and after each difference."""

_is_plain = re.compile(r"[ !#-%'-;=?-\[\]-~]*").fullmatch

_LONGEST: Final = 2000
"""The maximum number of list elements that are compared; an error message can show only fewer elements."""

_HOST: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields that are in the spec in the published type of pod specs, and in the security context in Kubernetes' internal
type.
"""

_VOLUME_SOURCES: Final = (
    *("gcePersistentDisk", "awsElasticBlockStore", "hostPath", "glusterfs", "nfs", "rbd", "quobyte", "iscsi"),
    *("flexVolume", "cinder", "cephfs", "fc", "flocker", "azureFile", "vsphereVolume", "azureDisk"),
    *("photonPersistentDisk", "portworxVolume", "scaleIO", "local", "storageos", "csi"),
)

_ORDER: Final[Mapping[str, Sequence[str]]] = {
    "PodSpec": (
        *("volumes", "initContainers", "containers", "ephemeralContainers", "restartPolicy"),
        *("terminationGracePeriodSeconds", "activeDeadlineSeconds", "dnsPolicy", "nodeSelector", "serviceAccountName"),
        *("automountServiceAccountToken", "nodeName", "securityContext", "imagePullSecrets", "hostname", "subdomain"),
        *("setHostnameAsFQDN", "affinity", "schedulerName", "tolerations", "hostAliases", "priorityClassName"),
        *("priority", "preemptionPolicy", "dnsConfig", "readinessGates", "runtimeClassName", "overhead"),
        *("enableServiceLinks", "topologySpreadConstraints", "os", "schedulingGates", "resourceClaims", "resources"),
        *("hostnameOverride", "schedulingGroup"),
    ),
    "PodSecurityContext": (
        *("seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot", "supplementalGroups"),
        *("supplementalGroupsPolicy", "fsGroup", "fsGroupChangePolicy", "sysctls", "seccompProfile"),
        *("appArmorProfile", "seLinuxChangePolicy"),
    ),
    "Volume": (
        *(
            "name",
            "hostPath",
            "emptyDir",
            "gcePersistentDisk",
            "awsElasticBlockStore",
            "gitRepo",
            "secret",
            "nfs",
            "iscsi",
        ),
        *("glusterfs", "persistentVolumeClaim", "rbd", "quobyte", "flexVolume", "cinder", "cephfs", "flocker"),
        *("downwardAPI", "fc", "azureFile", "configMap", "vsphereVolume", "azureDisk", "photonPersistentDisk"),
        *("projected", "portworxVolume", "scaleIO", "storageos", "csi", "ephemeral", "image"),
    ),
    "PersistentVolumeSource": _VOLUME_SOURCES,
    "PersistentVolumeSpec": (
        *("capacity", *_VOLUME_SOURCES, "accessModes", "claimRef", "persistentVolumeReclaimPolicy"),
        *("storageClassName", "mountOptions", "volumeMode", "nodeAffinity", "volumeAttributesClassName"),
    ),
}
"""The order of the fields of those internal types whose order differs from the published type."""

_PART_OF: Final = {"PersistentVolumeSource": "PersistentVolumeSpec"}
"""The internal types that are only a part of a published type, keyed by the name of the published type."""

_NAMES: Final = {
    **{
        name: name.upper()
        for name in ("cel", "csi", "fc", "grpc", "ip", "iqn", "iscsi", "nfs", "os", "rbd", "tty", "uid")
    },
    "apiGroup": "APIGroup",
    "apiGroups": "APIGroups",
    "apiVersion": "APIVersion",
    "awsElasticBlockStore": "AWSElasticBlockStore",
    "cephfs": "CephFS",
    "chapAuthDiscovery": "DiscoveryCHAPAuth",
    "chapAuthSession": "SessionCHAPAuth",
    "diskURI": "DataDiskURI",
    "dnsConfig": "DNSConfig",
    "dnsPolicy": "DNSPolicy",
    "fsGroup": "FSGroup",
    "fsGroupChangePolicy": "FSGroupChangePolicy",
    "fsType": "FSType",
    "gcePersistentDisk": "GCEPersistentDisk",
    "gmsaCredentialSpec": "GMSACredentialSpec",
    "gmsaCredentialSpecName": "GMSACredentialSpecName",
    "httpGet": "HTTPGet",
    "httpHeaders": "HTTPHeaders",
    "iscsiInterface": "ISCSIInterface",
    "pdName": "PDName",
    "seLinuxChangePolicy": "SELinuxChangePolicy",
    "seLinuxOptions": "SELinuxOptions",
    "sslEnabled": "SSLEnabled",
    "storageos": "StorageOS",
    "tcpSocket": "TCPSocket",
    "wwids": "WWIDs",
}
"""Go names of fields whose JSON names differ in more than the initial capital letter."""

_NAMES_WITHIN: Final = {
    ("AzureDiskVolumeSource", "diskName"): "DiskName",
    **{("DeviceAttribute", name): f"{name.capitalize()}Value" for name in ("int", "bool", "string", "version")},
    **{("DeviceAttribute", f"{name}s"): f"{name.capitalize()}Values" for name in ("int", "bool", "string", "version")},
    ("GlusterfsVolumeSource", "endpoints"): "EndpointsName",
    ("GlusterfsPersistentVolumeSource", "endpoints"): "EndpointsName",
    **{
        (f"RBD{kind}Source", name): go_name
        for kind in ("Volume", "PersistentVolume")
        for name, go_name in (
            ("monitors", "CephMonitors"),
            ("image", "RBDImage"),
            ("pool", "RBDPool"),
            ("user", "RadosUser"),
        )
    },
}
"""Go names of fields in one type whose JSON names differ in more than the initial capital letter, by type."""

_NUMBERS: Final = frozenset({"int32", "int64", "intstr.IntOrString"})


class _Type(NamedTuple):
    """Describes a Go struct: its name, and how its fields are formatted."""

    name: str
    fields: Sequence[GoField]
    is_published: bool
    """Whether fields have their JSON names and are omitted if they are empty, like in the published type."""


def difference(type_: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the unified diff of two structs of a core type (`PodSpec`); each line ends with a newline."""
    before, after = (written(type_, each).splitlines(keepends=True) for each in (old, new))
    found = difflib.unified_diff(before, after, n=_CONTEXT)
    return "".join([*found][2:])  # the headers with file names are omitted


def with_empties(fields: Mapping[str, Any], sent: Any) -> dict[str, Any]:
    """Return the fields of `sent`, including the empty lists and maps.

    Decoding drops these, but a difference shows them.
    """
    found = dict(fields)
    for name, value in sent.items() if isinstance(sent, dict) else ():
        if value in ([], {}) and found.get(name) is None:
            found[name] = value
        elif found.get(name) is not None:
            found[name] = _filled(found[name], value)
        elif isinstance(value, dict) and (empties := with_empties({}, value)):
            found[name] = empties
    return found


def _filled(value: Any, sent: Any) -> Any:
    if isinstance(value, list) and isinstance(sent, list) and len(value) == len(sent):
        return [_filled(*pair) for pair in zip(value, sent, strict=True)]
    return with_empties(value, sent) if isinstance(value, dict) else value


def written(type_: str, fields: Mapping[str, Any]) -> str:
    """Return a struct of a core type as indented JSON of Go's internal type, with a final newline."""
    return "".join(_value(f"v1.{type_}", fields, "\n")) + "\n"


def shown(type_: str, fields: Mapping[str, Any]) -> Any:
    """Return a struct of a published type with every field of the internal type, in the form that errors show."""
    return json.loads(written(type_, fields))


def _internal(type_: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    if type_ != "PodSpec":
        return fields
    context = {**(fields.get("securityContext") or {}), **{name: fields[name] for name in _HOST if name in fields}}
    return {**fields, "securityContext": context}


@cache
def _type(name: str) -> _Type | None:
    """Return the struct that Go names `v1.NAME`; None if that type is not a struct."""
    within = _PART_OF.get(name, name)
    definition = next((each + within for each in _GROUPS if each + within in go()), None)
    if definition is None:
        fields = go_fields(_META + name)
        return None if fields is None else _Type(name, fields, is_published=True)
    fields = go_fields(definition) or ()
    if (order := _ORDER.get(name)) is not None:
        by_name = {field.name: field for field in fields}
        fields = tuple(by_name[each] for each in order)
    if name == "PodSecurityContext":
        moved = {field.name: field for field in go_fields(f"{_CORE}PodSpec") or ()}
        fields = (*(moved[each] for each in _HOST), *fields)
    return _Type(name, fields, is_published=False)


def _value(type_: str, value: Any, line: str) -> Iterator[str]:
    """Yield the parts of a formatted value.

    The argument `line` is the line break and the indentation at the depth of the value.
    """
    if type_.startswith("*"):
        yield from ("null",) if value is None else _value(type_[1:], value, line)
    elif type_.startswith("[]"):
        yield from _list(type_[2:], value, line)
    elif type_.startswith("map[") or type_ == "v1.ResourceList":
        kind = "resource.Quantity" if type_ == "v1.ResourceList" else type_.partition("]")[2]
        yield from (
            _members([(key, kind, value[key]) for key in sorted(value)], line) if value is not None else ("null",)
        )
    elif (struct := _type(type_.removeprefix("v1."))) is not None:
        yield from _members([*_fields(struct, _internal(struct.name, value or {}))], line)
    else:
        yield _scalar(type_, value)


def _list(type_: str, values: Sequence[Any] | None, line: str) -> Iterator[str]:
    if not values:
        yield "null" if values is None else "[]"
        return
    deeper = f"{line} "
    for number, value in enumerate(values[:_LONGEST]):
        yield f"{',' if number else '['}{deeper}"
        yield from _value(type_, value, deeper)
    if len(values) > _LONGEST:
        yield f",{deeper}... and {len(values) - _LONGEST} more"
    yield f"{line}]"


def _fields(struct: _Type, value: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the Go name, the type and the value of each field of a struct."""
    for name, type_, omitted in struct.fields:
        found = value.get(name)
        if struct.is_published:
            if found or not omitted:
                yield name, type_, found
        elif type_ == "v1.ObjectMeta":  # the struct is embedded and is not a field
            meta = _type("ObjectMeta")
            yield from _fields(meta, found or {}) if meta is not None else ()
        else:
            yield _go_name(struct.name, name), type_, found


def _members(members: Sequence[tuple[str, str, Any]], line: str) -> Iterator[str]:
    if not members:
        yield "{}"
        return
    deeper = f"{line} "
    for number, (name, type_, value) in enumerate(members):
        yield f"{',' if number else '{'}{deeper}{_text(name)}: "
        yield from _value(type_, value, deeper)
    yield f"{line}}}"


def _scalar(type_: str, value: Any) -> str:
    if value is None:
        if type_ == "bool":
            return "false"
        if type_ in _NUMBERS:
            return "0"
        return '"0"' if type_ == "resource.Quantity" else '""'
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    """Encode a string in the same way as Go, which escapes the characters `<`, `>` and `&`."""
    if _is_plain(text):
        return f'"{text}"'
    quoted = json.dumps(text, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        quoted = quoted.replace(character, f"\\u{ord(character):04x}")
    return quoted


def _go_name(struct: str, name: str) -> str:
    found = _NAMES_WITHIN.get((struct, name)) or _NAMES.get(name)
    return found or name[0].upper() + name[1:]

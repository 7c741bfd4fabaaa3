"""Formats API types in the format of go-spew's `%#v`, with sorted keys, and without methods, addresses and capacities.

Kubernetes hashes the formatted string (`pkg/util/hash.DeepHashObject`, `dump.ForHash`), so names of ReplicaSets depend
on every byte of the result. The module `schema.published_schema` contains the fields of Kubernetes 1.36 with their
order and types. This module contains the Go names of the fields, and a list of embedded structs.

    a struct                  {Name:(string)web Optional:(*bool)true …}
    a list, a map             ([]v1.EnvVar)[{…} {…}]    (map[string]string)map[app:web tier:db]
    an absent value           ([]v1.EnvVar)<nil>        (*int64)<nil>

Guarantees: `print_value` formats a value like kube-controller-manager 1.36, which decodes the value from protobuf. In
decoded values, empty lists and maps are nil. The tests compare hashes of formatted values with hashes in recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

from ctrlmgr.controllers.workloads.go_quantity import GoQuantity, read
from ctrlmgr.schema.published_schema import go_fields

Print: TypeAlias = Callable[[Any], str]
"""The type of a function that formats a value without its type. The value None stands for an absent value."""

_CORE: Final = "io.k8s.api.core.v1."
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."

_NAMES: Final = {
    **{name: name.upper() for name in ("uid", "ip", "tty", "os", "grpc", "nfs", "iscsi", "rbd", "fc", "csi", "iqn")},
    "apiVersion": "APIVersion",
    "apiGroup": "APIGroup",
    "dnsPolicy": "DNSPolicy",
    "dnsConfig": "DNSConfig",
    "fsGroup": "FSGroup",
    "fsGroupChangePolicy": "FSGroupChangePolicy",
    "fsType": "FSType",
    "seLinuxOptions": "SELinuxOptions",
    "seLinuxChangePolicy": "SELinuxChangePolicy",
    "gmsaCredentialSpecName": "GMSACredentialSpecName",
    "gmsaCredentialSpec": "GMSACredentialSpec",
    "httpGet": "HTTPGet",
    "httpHeaders": "HTTPHeaders",
    "tcpSocket": "TCPSocket",
    "gcePersistentDisk": "GCEPersistentDisk",
    "awsElasticBlockStore": "AWSElasticBlockStore",
    "cephfs": "CephFS",
    "storageos": "StorageOS",
    "sslEnabled": "SSLEnabled",
    "diskURI": "DataDiskURI",
    "wwids": "WWIDs",
    "iscsiInterface": "ISCSIInterface",
    "chapAuthDiscovery": "DiscoveryCHAPAuth",
    "chapAuthSession": "SessionCHAPAuth",
    "pdName": "PDName",
}
"""The names of fields in Go, keyed by their JSON names. If a field is missing here, its Go name is the JSON name with a
capital letter.
"""
_NAMES_IN: Final = {
    "PodSpec": {"serviceAccount": "DeprecatedServiceAccount"},
    "RBDVolumeSource": {"monitors": "CephMonitors", "image": "RBDImage", "pool": "RBDPool", "user": "RadosUser"},
    "GlusterfsVolumeSource": {"endpoints": "EndpointsName"},
}
"""The names of fields in Go that are valid in one struct only."""
_NAMED: Final = ("LocalObjectReference", ("name",))
_EMBEDDED: Final = {
    "EphemeralContainer": ("EphemeralContainerCommon", ("targetContainerName",)),
    "Probe": ("ProbeHandler", ("exec", "httpGet", "tcpSocket", "grpc")),
    "Volume": ("VolumeSource", ("name",)),
    "SecretKeySelector": _NAMED,
    "ConfigMapKeySelector": _NAMED,
    "SecretEnvSource": _NAMED,
    "ConfigMapEnvSource": _NAMED,
    "ConfigMapProjection": _NAMED,
    "SecretProjection": _NAMED,
    "ConfigMapVolumeSource": _NAMED,
}
"""The struct that is embedded in each struct, with the JSON fields of the embedded struct. With `_ALL_BUT`, the JSON
fields are those that the embedded struct does not have.
"""
_ALL_BUT: Final = frozenset(("EphemeralContainer", "Volume"))

_ZERO: Final = {"bool": "false", "int": "0", "int32": "0", "int64": "0", "float64": "0", "intstr.Type": "0"}
_YEAR_1: Final = 62135596800
"""The number of seconds from the year 1, Go's epoch, to 1970."""
_NO_ZONE: Final = "<nil>"
_LOCAL_ZONE: Final = (
    "{name:(string)UTC zone:([]time.zone)<nil> tx:([]time.zoneTrans)<nil> extend:(string) "
    "cacheStart:(int64)0 cacheEnd:(int64)0 cacheZone:(*time.zone)<nil>}"
)
"""Go's `time.Local` in a container without a time zone, such as one of the official images. Times that are decoded from
protobuf have this time zone.
"""


def print_value(type_: str, value: Any) -> str:
    """Format a value that was decoded from JSON as a value of a Go type, such as `v1.PodTemplateSpec`."""
    return f"({type_}){_printer(type_)(value)}"


@cache
def _printer(type_: str) -> Print:
    if type_.startswith("*"):
        inner = _lazily(type_[1:])
        return lambda value: "<nil>" if value is None else inner(value)
    if type_.startswith("[]"):
        return _list(_lazily(type_[2:]))
    if type_.startswith("map["):
        key, _, element = type_[4:].partition("]")
        return _map(_lazily(key), _lazily(element))
    if special := _SPECIAL.get(type_):
        return special
    package, _, name = type_.rpartition(".")
    if package == "v1" and (definition := _definition(name)):
        return _struct(name, definition)
    return _scalar(_ZERO.get(type_, ""))


def _lazily(type_: str) -> Print:
    """Return a function that creates the printer when it is first used, because types may be recursive."""
    return lambda value: _printer(type_)(value)


def _definition(name: str) -> str | None:
    return next((each + name for each in (_CORE, _META) if go_fields(each + name) is not None), None)


def _scalar(zero: str) -> Print:
    def show(value: Any) -> str:
        if value is None:
            return zero
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return show


def _list(element: Print) -> Print:
    return lambda value: f"[{' '.join(map(element, value))}]" if value else "<nil>"


def _map(key: Print, element: Print) -> Print:
    def show(value: Mapping[str, Any] | None) -> str:
        if not value:
            return "<nil>"
        return f"map[{' '.join(f'{key(each)}:{element(value[each])}' for each in sorted(value))}]"

    return show


def _struct(name: str, definition: str) -> Print:
    rows = [(each.name, _go_name(name, each.name), each.type) for each in go_fields(definition) or ()]
    if name not in _EMBEDDED:
        return _fields(rows)
    embedded, listed = _EMBEDDED[name]
    inside = [row for row in rows if (row[0] in listed) != (name in _ALL_BUT)]
    inner = _fields(inside)
    outside = [row for row in rows if row not in inside]
    rest = _fields(outside)
    if rows.index(inside[0]) == 0:  # The embedded struct is the first or the last field.
        return lambda value: f"{{{embedded}:(v1.{embedded}){inner(value)} {rest(value)[1:]}"
    return lambda value: f"{rest(value)[:-1]} {embedded}:(v1.{embedded}){inner(value)}}}"


def _fields(rows: list[tuple[str, str, str]]) -> Print:
    printers = [(json, f"{go}:({type_})", _lazily(type_)) for json, go, type_ in rows]

    def show(value: Mapping[str, Any] | None) -> str:
        fields = value or {}
        return "{" + " ".join(label + show_one(fields.get(json)) for json, label, show_one in printers) + "}"

    return show


def _go_name(struct: str, field: str) -> str:
    if field == "metadata":  # TypeMeta is embedded in every struct.
        return "ObjectMeta"
    return _NAMES_IN.get(struct, {}).get(field) or _NAMES.get(field) or field[0].upper() + field[1:]


def _quantity(value: str | GoQuantity | None) -> str:
    return str(read(value) if isinstance(value, str) else value or GoQuantity())


def _int_or_string(value: Any) -> str:
    if isinstance(value, str):
        return f"{{Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string){value}}}"
    return f"{{Type:(intstr.Type)0 IntVal:(int32){value or 0} StrVal:(string)}}"


def _time(value: str | None) -> str:
    seconds = int(datetime.fromisoformat(value).timestamp()) + _YEAR_1 if value else 0
    zone = _LOCAL_ZONE if seconds else _NO_ZONE
    return f"{{Time:(time.Time){{wall:(uint64)0 ext:(int64){seconds} loc:(*time.Location){zone}}}}}"


def _raw_fields(value: Any) -> str:
    return f"{{Raw:([]uint8)[{' '.join(map(str, msgspec.json.encode(value)))}]}}"


_SPECIAL: Final[Mapping[str, Print]] = {
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "v1.Time": _time,
    "v1.FieldsV1": _raw_fields,
    "v1.ResourceList": _map(_scalar(""), _quantity),
}

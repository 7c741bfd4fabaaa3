"""How Go prints API types: go-spew's `%#v` with sorted keys, without methods, pointer addresses and capacities.

Kubernetes hashes that text (`pkg/util/hash.DeepHashObject`, `dump.ForHash`), so names of ReplicaSets depend on every
byte of it. The fields, their order and their types are those that `schema.structure` has of Kubernetes 1.36; what that
leaves out is here: the names that Go has for them, and which are embedded structs.

    a struct                  {Name:(string)web Optional:(*bool)true …}
    a list, a map             ([]v1.EnvVar)[{…} {…}]    (map[string]string)map[app:web tier:db]
    what is absent            ([]v1.EnvVar)<nil>        (*int64)<nil>

Guarantees: `print_value` prints a value of a type as kube-controller-manager 1.36 has it after decoding it from
protobuf, where empty lists and maps are nil. The literal hashes of recordings are the test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from ctrlmgr.schema.structure import go_fields

Print: TypeAlias = Callable[[Any], str]
"""Prints a value, None for one that is absent, without the type in front."""

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
"""What Go calls a field, by its name in JSON, where that is more than the same with a capital letter."""
_NAMES_IN: Final = {
    "PodSpec": {"serviceAccount": "DeprecatedServiceAccount"},
    "RBDVolumeSource": {"monitors": "CephMonitors", "image": "RBDImage", "pool": "RBDPool", "user": "RadosUser"},
    "GlusterfsVolumeSource": {"endpoints": "EndpointsName"},
}
"""The same for fields of one struct."""
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
"""The struct that is embedded in one, and which JSON fields it has, or (`_ALL_BUT`) does not have."""
_ALL_BUT: Final = frozenset(("EphemeralContainer", "Volume"))

_ZERO: Final = {"bool": "false", "int": "0", "int32": "0", "int64": "0", "float64": "0", "intstr.Type": "0"}
_TIME: Final = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"


def print_value(type_: str, value: Any) -> str:
    """Print a value, as decoded from JSON, of a Go type such as `v1.PodTemplateSpec`."""
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
    """Return a printer that is looked for when it is first needed: types may hold themselves."""
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
    if rows.index(inside[0]) == 0:  # it comes first, or last
        return lambda value: f"{{{embedded}:(v1.{embedded}){inner(value)} {rest(value)[1:]}"
    return lambda value: f"{rest(value)[:-1]} {embedded}:(v1.{embedded}){inner(value)}}}"


def _fields(rows: list[tuple[str, str, str]]) -> Print:
    printers = [(json, f"{go}:({type_})", _lazily(type_)) for json, go, type_ in rows]

    def show(value: Mapping[str, Any] | None) -> str:
        fields = value or {}
        return "{" + " ".join(label + show_one(fields.get(json)) for json, label, show_one in printers) + "}"

    return show


def _go_name(struct: str, field: str) -> str:
    if field == "metadata":  # embedded, as everywhere
        return "ObjectMeta"
    return _NAMES_IN.get(struct, {}).get(field) or _NAMES.get(field) or field[0].upper() + field[1:]


# Quantities: `pkg/api/resource/quantity.go`, `ParseQuantity`, which remembers the text it has read on its quick way.

_QUANTITY: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE]?)", re.ASCII)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NANO: Final = -9
_INT64: Final = 2**63


def _quantity(value: Any) -> str:
    text = "" if value is None else str(value)
    amount, scale, format_ = 0, 0, ""
    decimal = "<nil>"
    if text not in ("", "0"):
        match = _QUANTITY.fullmatch(text)
        assert match is not None, "a stored quantity is one"
        sign, whole, fraction, suffix = match.groups()
        whole, fraction = whole.lstrip("0"), fraction or ""
        format_ = "BinarySI" if suffix in _BINARY else "DecimalSI" if suffix in _DECIMAL else "DecimalExponent"
        quick = _quick(whole or "0", fraction, suffix)
        if quick is None:
            decimal, text = _infinite(sign, whole, fraction, suffix), ""
        else:
            amount, scale = -quick[0] if sign == "-" else quick[0], quick[1]
    return (
        f"{{i:(resource.int64Amount){{value:(int64){amount} scale:(resource.Scale){scale}}} "
        f"d:(resource.infDecAmount){{Dec:(*inf.Dec){decimal}}} s:(string){text} Format:(resource.Format){format_}}}"
    )


def _quick(whole: str, fraction: str, suffix: str) -> tuple[int, int] | None:
    """Return the amount and the power of ten of a quantity that Go reads on its quick way."""
    if suffix in _BINARY:
        factor, scale = 1 << _BINARY[suffix], 0
        room = -1 if fraction else 15 - len(whole) - _BINARY[suffix] * 3 // 10 - 1
    else:
        factor, scale = 1, _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
        room = 18 - len(whole) - len(fraction)
    scale -= len(fraction)
    amount = int(whole + fraction) * factor
    return (amount, scale) if room >= 0 and scale >= _NANO and amount < _INT64 else None


def _infinite(sign: str, whole: str, fraction: str, suffix: str) -> str:
    """Print the decimal of any size that Go keeps otherwise; its digits are in base 2^64."""
    unscaled, scale = int(whole + fraction or "0"), len(fraction)
    if suffix in _BINARY:
        unscaled <<= _BINARY[suffix]
    else:
        scale -= _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    if scale > -_NANO:  # finer than a billionth: rounded up
        unscaled, scale = -(-unscaled // 10 ** (scale + _NANO)), -_NANO
    words: list[str] = []
    while unscaled:
        words.append(str(unscaled % 2**64))
        unscaled >>= 64
    digits = f"[{' '.join(words)}]" if words else "<nil>"
    negative = "true" if sign == "-" else "false"
    return f"{{unscaled:(big.Int){{neg:(bool){negative} abs:(big.nat){digits}}} scale:(inf.Scale){scale}}}"


def _int_or_string(value: Any) -> str:
    if isinstance(value, str):
        return f"{{Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string){value}}}"
    return f"{{Type:(intstr.Type)0 IntVal:(int32){value or 0} StrVal:(string)}}"


_SPECIAL: Final[Mapping[str, Print]] = {
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "v1.Time": lambda value: _TIME,
    "v1.ResourceList": _map(_scalar(""), _quantity),
}

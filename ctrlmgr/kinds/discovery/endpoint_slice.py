"""The strategy of EndpointSlices: limits their size, and increases their generation when their labels change.

Source: Kubernetes `pkg/registry/discovery/endpointslice`, `pkg/apis/discovery/validation` and
`pkg/apis/discovery/v1/defaults.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported, required, too_many
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.ip_validation import (
    ip_warnings,
    is_ipv6,
    is_usual,
    parse_ip,
    validate_endpoint_ip,
    validate_legacy_ip,
)
from ctrlmgr.kinds.common_rules import each_problem, immutable
from ctrlmgr.kinds.core.endpoints import PROTOCOLS

MAX_ENDPOINTS = 1000
MAX_ADDRESSES = 100
MAX_PORTS = 20000
MAX_HINTS = 8

_ADDRESSES = Path("addresses")
_FAMILIES = {"IPv4": False, "IPv6": True}
_ADDRESS_TYPES = frozenset((*_FAMILIES, "FQDN"))
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_HOSTNAME = "kubernetes.io/hostname"


class EndpointSliceStrategy(Strategy):
    """The strategy of the kind discovery.k8s.io/v1 EndpointSlice."""

    compares_metadata = False

    def default(self, obj: Unstructured) -> None:
        """Set the default name of a slice's ports, which is empty, and their default protocol, which is TCP."""
        for port in obj.get("ports") or ():
            if port.get("name") is None:
                port["name"] = ""
            if port.get("protocol") is None:
                port["protocol"] = "TCP"

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the first generation of a slice, and drop the field `deprecatedTopology`, which only v1beta1 has."""
        metadata_of(obj)["generation"] = 1
        _drop_topology(obj, frozenset())

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Increase the generation of a slice if the slice or its labels change.

        The method also drops `deprecatedTopology` of changed endpoints.
        """
        old_metadata, metadata = old["metadata"], metadata_of(new)
        changed = any(_differs(new, old, field) for field in ("addressType", "endpoints", "ports"))
        if changed or _differs(metadata, old_metadata, "labels"):
            metadata["generation"] = (old_metadata.get("generation") or 0) + 1
        if _differs(new, old, "endpoints"):
            topologies = (each.get("deprecatedTopology") or {} for each in old.get("endpoints") or ())
            _drop_topology(new, frozenset(each[_HOSTNAME] for each in topologies if each.get(_HOSTNAME)))

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the address type, the ports and the endpoints; unchanged endpoints are not validated."""
        address_type = obj.get("addressType", "")
        path = Path("addressType")
        errors: list[FieldError] = []
        if not address_type:
            errors.append(required(path))
        elif address_type not in _ADDRESS_TYPES:
            errors.append(not_supported(path, address_type, _ADDRESS_TYPES))
        errors += _validate_ports(obj.get("ports") or (), Path("ports"))
        endpoints = obj.get("endpoints") or ()
        if ctx.old is None or _differs(obj, ctx.old, "endpoints"):
            errors += _validate_endpoints(endpoints, address_type, Path("endpoints"))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the address type is unchanged."""
        return immutable(new.get("addressType", ""), old.get("addressType", ""), Path("addressType"))

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about domain names in a new slice, and about addresses that are not in canonical form."""
        warnings = []
        if old is None and obj.get("addressType") == "FQDN":
            # Kubernetes' warnings contain the same path.
            warnings.append("spec.addressType: FQDN endpoints are deprecated")
        if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) in _CONTROLLERS:
            return warnings
        for at, endpoint in enumerate(obj.get("endpoints") or ()):
            for index, address in enumerate(endpoint.get("addresses") or ()):
                if not is_usual(address):
                    warnings += ip_warnings(Path("endpoints").at(at).child("addresses").at(index), address)
        return warnings


def _differs(new: Mapping[str, Any], old: Mapping[str, Any], field: str) -> bool:
    """Return whether a field of the slice has changed; an absent list or map equals an empty list or map."""
    return bool((new.get(field) or None) != (old.get(field) or None))


def _drop_topology(obj: Unstructured, known_nodes: frozenset[str]) -> None:
    """Drop the field `deprecatedTopology` of endpoints.

    If only `deprecatedTopology` contains the node of an endpoint, and the old slice had that node, set `nodeName` to
    the node.
    """
    for endpoint in obj.get("endpoints") or ():
        topology = endpoint.pop("deprecatedTopology", None) or {}
        node = topology.get(_HOSTNAME)
        if node in known_nodes and endpoint.get("nodeName") is None and not name_formats.subdomain_name(node):
            endpoint["nodeName"] = node


def _validate_endpoints(endpoints: Sequence[Mapping[str, Any]], address_type: str, path: Path) -> list[FieldError]:
    if len(endpoints) > MAX_ENDPOINTS:
        return [too_many(path, len(endpoints), MAX_ENDPOINTS)]
    check = _address_check(address_type)
    found = ((at, error) for at, each in enumerate(endpoints) for error in _validate_endpoint(each, check))
    return [error._replace(field=path.at(at).child(error.field)) for at, error in found]


AddressCheck = Callable[[str, int], list[FieldError]]


def _validate_endpoint(endpoint: Mapping[str, Any], check: AddressCheck) -> list[FieldError]:
    """Validate one endpoint of a slice; a slice can have many endpoints.

    The error paths are relative to the endpoint, and are computed only if there are errors.
    """
    addresses = endpoint.get("addresses") or ()
    errors: list[FieldError] = []
    if not addresses:
        errors.append(required(_ADDRESSES, "must contain at least 1 address"))
    elif len(addresses) > MAX_ADDRESSES:
        errors.append(too_many(_ADDRESSES, len(addresses), MAX_ADDRESSES))
    for at, each in enumerate(addresses):
        errors += check(each, at)
    node_name, hostname = endpoint.get("nodeName"), endpoint.get("hostname")
    if node_name is not None:
        errors += each_problem(name_formats.subdomain_name, node_name, Path("nodeName"))
    if hostname is not None:
        errors += each_problem(name_formats.dns1123_label, hostname, Path("hostname"))
    if hints := endpoint.get("hints"):
        zones = hints.get("forZones") or ()
        errors += _validate_hints(zones, name_formats.label_value, Path("hints.forZones"))
        if len(zones) <= MAX_HINTS:
            errors += _validate_hints(hints.get("forNodes") or (), name_formats.subdomain_name, Path("hints.forNodes"))
    return errors


def _address_check(address_type: str) -> AddressCheck:
    """Return the function that validates an address of an endpoint; the function also gets the address's index."""
    if address_type == "FQDN":
        return lambda address, at: _validate_domain(address, _ADDRESSES.at(at))
    if address_type not in _FAMILIES:  # the check of the address type reports this error
        return lambda address, at: []
    wants_ipv6 = _FAMILIES[address_type]

    def check(address: str, at: int) -> list[FieldError]:
        if is_usual(address) and is_ipv6(address) == wants_ipv6:
            return []
        path = _ADDRESSES.at(at)
        if errors := validate_legacy_ip(path, address):
            return errors
        if is_ipv6(address) != wants_ipv6:
            errors.append(invalid(_ADDRESSES, address, f"must be an {address_type} address"))
        elif wants_ipv6 and (canonical := str(parse_ip(address))) != address:
            errors.append(invalid(path, address, f'must be in canonical form ("{canonical}")'))
        return errors + validate_endpoint_ip(path, address)

    return check


def _validate_domain(address: str, path: Path) -> list[FieldError]:
    """Validate a domain name of at least two labels (`IsFullyQualifiedDomainName`)."""
    if not address:
        return [required(path)]
    name = address.removesuffix(".")
    if problems := name_formats.dns1123_subdomain(name):
        return [invalid(path, name, ",".join(problems))]
    labels = name.split(".")
    if len(labels) < 2:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in labels:
        if problems := name_formats.dns1123_label(label):
            return [invalid(path, label, ",".join(problems))]
    return []


def _validate_hints(
    hints: Sequence[Mapping[str, Any]], check: Callable[[str], list[str]], path: Path
) -> list[FieldError]:
    if len(hints) > MAX_HINTS:
        return [too_many(path, len(hints), MAX_HINTS)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for at, hint in enumerate(hints):
        name, below = hint.get("name", ""), path.at(at).child("name")
        if name in seen:
            errors.append(duplicate(below, name))
        seen.add(name)
        errors += each_problem(check, name, below)
    return errors


def _validate_ports(ports: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    if len(ports) > MAX_PORTS:
        return [too_many(path, len(ports), MAX_PORTS)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for at, port in enumerate(ports):
        name, protocol, below = port["name"], port["protocol"], path.at(at)
        if name:
            errors += each_problem(name_formats.dns1123_label, name, below.child("name"))
        if name in seen:
            errors.append(duplicate(below.child("name"), name))
        seen.add(name)
        if protocol not in PROTOCOLS:
            errors.append(not_supported(below.child("protocol"), protocol, PROTOCOLS))
        app_protocol = port.get("appProtocol")
        if app_protocol is not None:
            errors += each_problem(name_formats.qualified_name, app_protocol, below.child("appProtocol"))
    return errors

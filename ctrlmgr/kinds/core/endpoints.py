"""The strategy of Endpoints: every subset must have addresses that clients can connect to.

Source: Kubernetes `pkg/registry/core/endpoint`, `pkg/apis/core/validation`, `ValidateEndpoints`, and
`pkg/apis/core/v1/defaults.go`, `SetDefaults_Endpoints`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.ip_validation import ip_warnings, is_usual, validate_endpoint_ip, validate_legacy_ip
from ctrlmgr.kinds.common_rules import each_problem

PROTOCOLS = frozenset(("TCP", "UDP", "SCTP"))
_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
_CONTROLLER = "endpoint-controller"


class EndpointsStrategy(Strategy):
    """The strategy of the kind v1 Endpoints."""

    allow_create_on_update = True

    def default(self, obj: Unstructured) -> None:
        """Default the protocol of the ports in Endpoints to TCP."""
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                if not port.get("protocol"):
                    port["protocol"] = "TCP"

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the subsets of Endpoints if they have changed.

        Unchanged subsets are not validated. Therefore old objects can still be updated after the rules became stricter.
        """
        subsets = obj.get("subsets") or []
        if ctx.old is not None and subsets == (ctx.old.get("subsets") or []):
            return []
        path = Path("subsets")
        return [error for at, each in enumerate(subsets) for error in _validate_subset(each, path.at(at))]

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about IP addresses that are not in canonical form.

        Writes by the endpoints controller are not checked, because this controller writes only canonical addresses.
        """
        if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) == _CONTROLLER:
            return []
        return [warning for path, each in _addresses(obj) for warning in ip_warnings(path.child("ip"), each["ip"])]


def _addresses(obj: Unstructured) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Return the addresses that may need a warning; usually there are few."""
    for at, subset in enumerate(obj.get("subsets") or ()):
        yield from _addresses_of(subset, Path("subsets").at(at))


def _addresses_of(subset: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for field in ("addresses", "notReadyAddresses"):
        below = path.child(field)
        for at, each in enumerate(subset.get(field) or ()):
            if not _is_usual(each):
                yield below.at(at), each


def _is_usual(address: Mapping[str, Any]) -> bool:
    """Return whether an IP address is valid and in canonical form."""
    hostname, node_name = address.get("hostname"), address.get("nodeName")
    return (
        is_usual(address.get("ip", ""))
        and not (hostname and name_formats.dns1123_label(hostname))
        and not (node_name is not None and name_formats.subdomain_name(node_name))
    )


def _validate_subset(subset: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    for below, address in _addresses_of(subset, path):
        errors += _validate_address(address, below)
    ports: Sequence[Mapping[str, Any]] = subset.get("ports") or ()
    for at, port in enumerate(ports):
        errors += _validate_port(port, path.child("ports").at(at), named=len(ports) > 1)
    return errors


def _validate_address(address: Mapping[str, Any], path: Path) -> list[FieldError]:
    ip = address.get("ip", "")
    errors = validate_legacy_ip(path.child("ip"), ip)
    if hostname := address.get("hostname"):
        errors += each_problem(name_formats.dns1123_label, hostname, path.child("hostname"))
    node_name = address.get("nodeName")
    if node_name is not None:
        errors += each_problem(name_formats.subdomain_name, node_name, path.child("nodeName"))
    return errors + validate_endpoint_ip(path.child("ip"), ip)


def _validate_port(port: Mapping[str, Any], path: Path, *, named: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if name := port.get("name"):
        errors += each_problem(name_formats.dns1123_label, name, path.child("name"))
    elif named:
        errors.append(required(path.child("name")))
    number = port.get("port", 0)
    errors += [invalid(path.child("port"), number, each) for each in name_formats.port_number(number)]
    if port["protocol"] not in PROTOCOLS:
        errors.append(not_supported(path.child("protocol"), port["protocol"], PROTOCOLS))
    app_protocol = port.get("appProtocol")
    if app_protocol is not None:
        errors += each_problem(name_formats.qualified_name, app_protocol, path.child("appProtocol"))
    return errors

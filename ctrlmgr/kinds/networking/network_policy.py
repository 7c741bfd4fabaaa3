"""The strategy of NetworkPolicies, which describe the allowed traffic of pods.

Source: Kubernetes `pkg/apis/networking/v1/defaults.go`, `pkg/apis/networking/validation/validation.go` and
`pkg/registry/networking/networkpolicy/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required, tentatively
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.api.warning_limits import limited_warnings
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.ip_validation import (
    Network,
    canonical_network,
    cidr_warnings,
    parse_cidr,
    validate_legacy_cidr,
)
from ctrlmgr.engine.validation.label_validation import validate_label_selector
from ctrlmgr.kinds.apps.templates import SPEC
from ctrlmgr.kinds.common_rules import each_problem

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")
_DIRECTIONS = (("ingress", "from"), ("egress", "to"))


class NetworkPolicyStrategy(Strategy):
    """The strategy of the kind networking.k8s.io/v1 NetworkPolicy."""

    has_generation = True
    revalidates = 0

    def default(self, obj: Unstructured) -> None:
        """Set the default protocols and the default policy types of a NetworkPolicy."""
        spec = obj.setdefault("spec", {})
        for direction, _ in _DIRECTIONS:
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    if port.get("protocol") is None:
                        port["protocol"] = "TCP"
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the spec of a NetworkPolicy. Invalid networks are allowed if the old spec contained them."""
        spec = obj.get("spec") or {}
        existing = {network for _, block in _blocks(ctx.old or {}) for _, network in _networks(block, Path())}
        before = ((ctx.old or {}).get("spec") or {}).get("podSelector")
        lenient = bool(tentatively(lambda: validate_label_selector(before, Path())))
        errors = validate_label_selector(
            spec.get("podSelector"), SPEC.child("podSelector"), invalid_values_allowed=lenient
        )
        for direction, peers in _DIRECTIONS:
            for index, rule in enumerate(spec.get(direction) or ()):
                at = SPEC.child(direction).at(index)
                for number, port in enumerate(rule.get("ports") or ()):
                    errors += _validate_port(port, at.child("ports").at(number))
                for number, peer in enumerate(rule.get(peers) or ()):
                    errors += _validate_peer(peer, existing, at.child(peers).at(number), lenient=lenient)
        return errors + _validate_types(spec.get("policyTypes") or [], SPEC.child("policyTypes"))

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about networks in a NetworkPolicy that are not in canonical form."""
        networks = (each for path, block in _blocks(obj) for each in _networks(block, path))
        return limited_warnings(warning for path, network in networks for warning in cidr_warnings(path, network))


def _blocks(obj: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the IP blocks of a NetworkPolicy, with their paths."""
    spec = obj.get("spec") or {}
    for direction, peers in _DIRECTIONS:
        for index, rule in enumerate(spec.get(direction) or ()):
            for number, peer in enumerate(rule.get(peers) or ()):
                if (block := peer.get("ipBlock")) is not None:
                    yield SPEC.child(direction).at(index).child(peers).at(number).child("ipBlock"), block


def _networks(block: Mapping[str, Any], path: Path) -> list[tuple[Path, str]]:
    excepted = enumerate(block.get("except") or ())
    return [(path.child("cidr"), block.get("cidr") or "")] + [
        (path.child("except").at(i), each) for i, each in excepted
    ]


def _validate_port(port: Mapping[str, Any], path: Path) -> list[FieldError]:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    errors: list[FieldError] = []
    if protocol is not None and protocol not in _PROTOCOLS:
        errors.append(not_supported(path.child("protocol"), protocol, _PROTOCOLS))
    if number is None and end is not None:
        errors.append(invalid(path.child("endPort"), end, "may not be specified when `port` is not specified"))
    if isinstance(number, str):
        if end is not None:
            errors.append(invalid(path.child("endPort"), end, "may not be specified when `port` is non-numeric"))
        errors += each_problem(name_formats.port_name, number, path.child("port"))
    elif number is not None:
        errors += [invalid(path.child("port"), number, each) for each in name_formats.port_number(number)]
        if end is not None and end < number:
            # As in Kubernetes, the error shows only the port.
            errors.append(invalid(path.child("endPort"), number, "must be greater than or equal to `port`"))
        problems = name_formats.port_number(end) if end is not None else []
        errors += [invalid(path.child("endPort"), end, each) for each in problems]
    return errors


def _validate_peer(
    peer: Mapping[str, Any], existing: Collection[str], path: Path, *, lenient: bool
) -> list[FieldError]:
    block = peer.get("ipBlock")
    given = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    errors: list[FieldError] = []
    for field in given:
        errors += validate_label_selector(peer[field], path.child(field), invalid_values_allowed=lenient)
    if block is not None:
        errors += _validate_block(block, existing, path.child("ipBlock"))
    elif not given:
        errors.append(required(path, "must specify a peer"))
    if block is not None and given:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _validate_block(block: Mapping[str, Any], existing: Collection[str], path: Path) -> list[FieldError]:
    (at, whole), *excepted = _networks(block, path)
    if not whole:
        return [required(at)]
    errors = validate_legacy_cidr(at, whole, existing)
    if (network := parse_cidr(whole)) is None:
        return errors
    for at, text in excepted:
        if _is_canonical_part(text, network):
            continue
        errors += validate_legacy_cidr(at, text, existing)
        part = parse_cidr(text)
        if part is not None and not _is_part(part, network):
            errors.append(invalid(at, text, "must be a strict subset of `cidr`"))
    return errors


def _is_canonical_part(text: str, network: Network) -> bool:
    """Return whether a string is a CIDR in canonical form that is contained in a network."""
    part = canonical_network(text)
    if part is None:
        return False
    version, address, length = part
    if version != network.address.version or length <= network.length:
        return False
    host_bits = network.address.max_prefixlen - network.length
    return address >> host_bits == int(network.address) >> host_bits


def _is_part(part: Network, network: Network) -> bool:
    if part.address.version != network.address.version or part.length <= network.length:
        return False
    host_bits = network.address.max_prefixlen - network.length
    return int(part.base) >> host_bits == int(network.base) >> host_bits


def _validate_types(types: list[str], path: Path) -> list[FieldError]:
    if len(types) > len(_TYPES):
        return [invalid(path, types, "may not specify more than two policyTypes")]
    unknown = [(index, each) for index, each in enumerate(types) if each not in _TYPES]
    return [not_supported(path.at(index), each, _TYPES) for index, each in unknown]

"""Decides whether a kubelet may get the serving certificate that it requests.

Source: `pkg/apis/certificates/helpers.go` (ValidateKubeletServingCSR); for the names that kubelets request,
`pkg/kubelet/certificate/kubelet.go` (addressesToHostnamesAndIPs).
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

import msgspec
from cryptography import x509

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import (
    KUBELET_SERVING_SIGNER,
    SigningRequest,
    alternative_names,
    common_name,
    kubelet_serving_problem,
    parse_request,
)

_USER: Final = "system:node:"
_GROUP: Final = "system:nodes"
_DNS_TYPES: Final = ("InternalDNS", "ExternalDNS")

Name = x509.GeneralName


class _Address(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    address: str = ""


class _Status(msgspec.Struct, frozen=True, gc=False):
    addresses: list[_Address] | None = None


class _Node(msgspec.Struct, frozen=True, gc=False):
    status: _Status | None = None


def requesting_node(request: SigningRequest) -> str:
    """Return the name of the node that requests its own serving certificate.

    The name is empty if the request is not a node's request for its own certificate. The name is also empty if the
    request is already decided, or if the signer would not sign the request. Raises ValueError if the request cannot be
    parsed.
    """
    spec = request.spec
    if request.status.certificate or request.is_("Approved") or request.is_("Denied"):
        return ""
    if spec.signer_name != KUBELET_SERVING_SIGNER:
        return ""
    if not spec.username.startswith(_USER) or _GROUP not in spec.groups:
        return ""
    parsed = parse_request(spec.request)
    if kubelet_serving_problem(parsed, spec.usages) or common_name(parsed) != spec.username:
        return ""
    return spec.username.removeprefix(_USER)


def has_names_of(request: SigningRequest, node: Object) -> bool:
    """Return whether the names in the certificate request are exactly the addresses of a node."""
    status = node.view(_Node).status
    addresses = (status.addresses if status is not None else None) or ()
    return set(alternative_names(parse_request(request.spec.request))) == set(_names(addresses))


def _names(addresses: Iterable[_Address]) -> Iterable[Name]:
    for each in addresses:
        if each.type in _DNS_TYPES:
            yield x509.DNSName(each.address)
            continue
        try:
            yield x509.IPAddress(ip_address(each.address))
        except ValueError:
            if each.type == "Hostname" and each.address:
                yield x509.DNSName(each.address)

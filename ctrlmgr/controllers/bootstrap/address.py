"""Chooses the address of this server for the Endpoints of the `kubernetes` Service.

Guarantees: the address is never loopback, link-local or unspecified, because the API does not allow such addresses in
Endpoints. The chosen address always has the Service's IP family. If the server's address is not suitable, the address
of the default route is used. The API server of Kubernetes makes the same choice when it listens on loopback or on all
addresses (apimachinery `ResolveBindAddress`).
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from ctrlmgr.api.field import ROOT
from ctrlmgr.engine.validation.ip_validation import parse_ip, validate_endpoint_ip
from ctrlmgr.kinds.allocators.service_ranges import IPV6

log = structlog.get_logger(__name__)


def endpoint_address(advertised: str, family: str, default_route: Callable[[int], str]) -> str | None:
    """Return the address to publish, in canonical form; None if this machine has no suitable address.

    `advertised` is the server's configured address; `family` (`IPv4` or `IPv6`) is the IP family of the Service. The
    function `default_route` takes an IP version (4 or 6) and returns the machine's own address on the default route of
    that version. If the machine has no default route, the function returns the loopback address.
    """
    if (address := _publishable(advertised, family)) is not None:
        return address
    found = _publishable(default_route(6 if family == IPV6 else 4), family)
    if found is None:
        log.warning("no address for the kubernetes service; set server.advertise_address", family=family)
    else:
        log.info(
            "advertising the default route's address in the kubernetes service", address=found, instead_of=advertised
        )
    return found


def _publishable(text: str, family: str) -> str | None:
    address = parse_ip(text)
    if address is None or (address.version == 6) != (family == IPV6) or validate_endpoint_ip(ROOT, text):
        return None
    return str(address)

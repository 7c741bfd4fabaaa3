"""Under which address other machines reach this server: what the Endpoints of the `kubernetes` service can hold.

Guarantees: never a loopback, link-local or unspecified address, which the API does not allow in Endpoints, and never
one of another family than the service's. Instead of such a one it is the address that the default route starts from,
as kube-apiserver has it when it listens on loopback or everywhere (apimachinery `ResolveBindAddress`).
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from ctrlmgr.api.field import ROOT
from ctrlmgr.engine.validation.addresses import parse_ip, validate_endpoint_ip
from ctrlmgr.kinds.allocators.ranges import IPV6

log = structlog.get_logger(__name__)


def endpoint_address(advertised: str, family: str, default_route: Callable[[int], str]) -> str | None:
    """Return the address to publish, in canonical form; None if this machine has none that could be.

    `advertised` is where the server says it is, `family` (`IPv4` or `IPv6`) the service's. `default_route` finds the
    machine's own address on its default route of IP version 4 or 6; loopback if there is none.
    """
    if (address := _publishable(advertised, family)) is not None:
        return address
    found = _publishable(default_route(6 if family == IPV6 else 4), family)
    if found is None:
        log.warning("no address to publish for the kubernetes service; set server.advertise_address", family=family)
    else:
        log.info("the kubernetes service leads to the default route's address", address=found, instead_of=advertised)
    return found


def _publishable(text: str, family: str) -> str | None:
    address = parse_ip(text)
    if address is None or (address.version == 6) != (family == IPV6) or validate_endpoint_ip(ROOT, text):
        return None
    return str(address)

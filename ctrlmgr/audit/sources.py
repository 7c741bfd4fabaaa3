"""Computes the source addresses of a request from its headers and its connection.

Source: apimachinery `pkg/util/net/http.go` (`SourceIPs`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence


def sources(forwarded: bytes, real: bytes, peer: str) -> Sequence[str]:
    """Return the known addresses on the path of a request, from the client to the connection's peer.

    `forwarded` and `real` are the headers X-Forwarded-For and X-Real-Ip, or empty strings; invalid addresses in the
    headers are dropped. `peer` is the address of the connection's peer, or empty if the peer has no address.
    """
    if not forwarded and not real:
        return (peer,) if peer else ()
    found = [each for part in forwarded.split(b",") if (each := _address(part))]
    if (address := _address(real)) and address not in found:
        found.append(address)
    if peer and (not found or found[-1] != peer):
        found.append(peer)
    return tuple(found)


def _address(text: bytes) -> str:
    try:
        return str(ipaddress.ip_address(text.decode("ascii").strip()))
    except ValueError:
        return ""

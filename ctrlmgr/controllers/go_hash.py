"""Computes Kubernetes' order of ports and subsets, which are sorted by a hash of their Go representation.

`pkg/api/v1/endpoints/util.go` sorts by a hash of `dump.ForHash`, which in 1.36 is the 128-bit FNV-1a. (Earlier versions
used MD5, which FIPS forbids: kubernetes/kubernetes#129652.) The hashed string is go-spew's `%#v`. Keys are sorted;
methods and pointer addresses are left out. For ports and subsets, the hashed string is:

    a struct                  (v1.EndpointPort){Name:(string)http Port:(int32)80 …}
    an element of a slice     {Name:(string)http …}             its type is written before the slice
    a slice                   ([]v1.EndpointPort)[{…} {…}]       nil: ([]v1.EndpointPort)<nil>
    a pointer                 (*string)text                      nil: (*string)<nil>

Guarantee: `port_order` and `subset_order` sort exactly as kube-controller-manager 1.36 does; tests with recordings
check this. The computation of the hash is slow, so callers compute hashes only if there are two or more elements to
sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from ctrlmgr.api.core import EndpointAddress, EndpointPort, EndpointSubset

T = TypeVar("T")

_OFFSET = 0x6C62272E07BB014262B821756295C58D
_PRIME = (1 << 88) + 0x13B
_MASK = (1 << 128) - 1


def fnv1a_128(data: bytes) -> int:
    """Return the 128-bit FNV-1a hash as a number, which sorts like Go's big-endian bytes."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value


@lru_cache(maxsize=4096)
def port_order(port: EndpointPort) -> int:
    """Return the sort key of a port within its subset."""
    return fnv1a_128(f"(v1.EndpointPort){_port(port)}".encode())


def subset_order(subset: EndpointSubset) -> int:
    """Return the sort key of a subset whose addresses and ports are sorted."""
    addresses = _slice("v1.EndpointAddress", subset.addresses, _address)
    not_ready = _slice("v1.EndpointAddress", subset.not_ready_addresses, _address)
    ports = _slice("v1.EndpointPort", subset.ports, _port)
    fields = f"{{Addresses:{addresses} NotReadyAddresses:{not_ready} Ports:{ports}}}"
    return fnv1a_128(f"(v1.EndpointSubset){fields}".encode())


def _slice(type_: str, elements: Iterable[T] | None, dump: Callable[[T], str]) -> str:
    return f"([]{type_})<nil>" if elements is None else f"([]{type_})[{' '.join(map(dump, elements))}]"


def _pointer(text: str | None) -> str:
    return "(*string)<nil>" if text is None else f"(*string){text}"


def _port(port: EndpointPort) -> str:
    return (
        f"{{Name:(string){port.name} Port:(int32){port.port} "
        f"Protocol:(v1.Protocol){port.protocol} AppProtocol:{_pointer(port.app_protocol)}}}"
    )


def _address(address: EndpointAddress) -> str:
    target = address.target_ref
    reference = (
        "<nil>"
        if target is None
        else (
            f"{{Kind:(string){target.kind} Namespace:(string){target.namespace} Name:(string){target.name} "
            f"UID:(types.UID){target.uid} APIVersion:(string){target.api_version} "
            f"ResourceVersion:(string){target.resource_version} FieldPath:(string){target.field_path}}}"
        )
    )
    return (
        f"{{IP:(string){address.ip} Hostname:(string){address.hostname} "
        f"NodeName:{_pointer(address.node_name)} TargetRef:(*v1.ObjectReference){reference}}}"
    )

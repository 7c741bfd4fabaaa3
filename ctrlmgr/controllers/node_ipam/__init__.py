"""The node IPAM controller: allocates ranges of pod addresses to each node, one range per IP family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import NODES, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import RANGES as _RANGES
from ctrlmgr.settings.setting_types import SWITCH, Kind, one_of, whole


def _read_ranges(value: object) -> str:
    return str(_RANGES.read(value)) if value else ""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the node IPAM controller.

    The sizes of the ranges are prefix lengths. The prefix length 0 stands for the default of the IP family.
    """

    allocate_node_cidrs: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether each node gets a pod CIDR from cluster_cidr.",
            flag="--allocate-node-cidrs",
            metavar="BOOL",
        ),
    ] = False
    cluster_cidr: Annotated[
        str,
        Kind(f"{_RANGES.expects}, or empty", _read_ranges),
        Setting(
            "The CIDR of pod addresses: one, or one of IPv4 and one of IPv6. Empty: 10.244.0.0/16.",
            flag="--cluster-cidr",
            metavar="CIDR[,CIDR]",
        ),
    ] = ""
    node_cidr_mask_size: Annotated[
        int,
        whole(0),
        Setting(
            "The mask size of a node's pod CIDR in a single-stack cluster. 0: 24 for IPv4, 64 for IPv6.",
            flag="--node-cidr-mask-size",
            metavar="BITS",
        ),
    ] = 0
    node_cidr_mask_size_ipv4: Annotated[
        int,
        whole(0),
        Setting(
            "The mask size of a node's IPv4 pod CIDR in a dual-stack cluster.",
            flag="--node-cidr-mask-size-ipv4",
            metavar="BITS",
        ),
    ] = 0
    node_cidr_mask_size_ipv6: Annotated[
        int,
        whole(0),
        Setting(
            "The mask size of a node's IPv6 pod CIDR in a dual-stack cluster.",
            flag="--node-cidr-mask-size-ipv6",
            metavar="BITS",
        ),
    ] = 0
    cidr_allocator_type: Annotated[
        str,
        one_of("RangeAllocator", "CloudAllocator"),
        Setting(
            'The allocator of pod CIDRs: "RangeAllocator" (ctrlmgr allocates them) or "CloudAllocator" (a cloud '
            "provider does).",
            flag="--cidr-allocator-type",
            metavar="TYPE",
        ),
    ] = "RangeAllocator"


DESCRIPTOR = ControllerDescriptor(
    name="node-ipam-controller",
    aliases=("nodeipam",),
    component="cidrAllocator",
    account="node-controller",
    does="allocates pod CIDRs to nodes, with `--allocate-node-cidrs`",
    watches=(NODES, Resource("networking.k8s.io", "servicecidrs")),
    builder="ctrlmgr.controllers.node_ipam.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""

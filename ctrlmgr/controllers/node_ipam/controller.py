"""The node IPAM controller: sets `spec.podCIDR` and `spec.podCIDRs` of nodes that lack these fields.

Guarantees, which are the same as in Kubernetes' range allocator: the existing ranges of nodes and Services are marked
as used before any range is allocated. A node keeps an existing range. The ranges of a deleted node become free. If no
range is free, an Event reports the problem, and the reconcile of the node is retried. The controller has only one
worker, so no lock is needed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

import msgspec
import structlog

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import NORMAL, Recorder
from ctrlmgr.controllers.node_ipam import DESCRIPTOR, Options
from ctrlmgr.controllers.node_ipam.cidr_set import Network, Pool, pools
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch

log = structlog.get_logger(__name__)

SERVICE_CIDRS = Resource("networking.k8s.io", "servicecidrs")


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    ranges: list[str] | None = msgspec.field(default=None, name="podCIDRs")


class _Node(msgspec.Struct, frozen=True, gc=False):
    spec: _NodeSpec = _NodeSpec()


class _CidrSpec(msgspec.Struct, frozen=True, gc=False):
    cidrs: list[str] | None = None


class _ServiceCidr(msgspec.Struct, frozen=True, gc=False):
    spec: _CidrSpec = _CidrSpec()


_decode_node = msgspec.json.Decoder(_Node).decode
_decode_service_cidr = msgspec.json.Decoder(_ServiceCidr).decode


class NoRange(CtrlmgrError):
    """Raised if all ranges of a pool are used."""

    retryable = True


class NodeIpam:
    """Reconciles the pod address ranges of nodes."""

    def __init__(self, nodes: Lister, service_cidrs: Lister, pools: Sequence[Pool], recorder: Recorder) -> None:
        """Create a reconciler that allocates the ranges of nodes from `pools`."""
        self._nodes = nodes
        self._service_cidrs = service_cidrs
        self._pools = pools
        self._recorder = recorder
        self._held: dict[str, list[Network]] = {}

    def on_start(self) -> Iterator[Key]:
        """Mark the existing ranges of nodes as used before the first allocation, and yield the keys of all nodes."""
        for service_cidr in self._service_cidrs.list():
            for text in _decode_service_cidr(service_cidr.body).spec.cidrs or ():
                self._occupy(ipaddress.ip_network(text))
        for node in self._nodes.list():
            self._hold(node)
        yield from (node.key for node in self._nodes.list())

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Allocate a node's ranges, or release the ranges of a deleted node.

        Raises `NoRange` if all ranges are used.
        """
        node = self._nodes.get(key)
        if node is None:
            self._release(self._held.pop(key.name, []))
        elif not self._hold(node) and not node.is_terminating:
            self._give(node, client)

    def _hold(self, node: Object) -> bool:
        """Mark the existing ranges of a node as used; return False if the node has no ranges."""
        texts = _decode_node(node.body).spec.ranges
        if not texts:
            return False
        networks: list[Network] = [ipaddress.ip_network(text, strict=False) for text in texts]
        if self._held.get(node.name) != networks:
            self._release(self._held.get(node.name, []))
            for each in networks:
                self._occupy(each)
            self._held[node.name] = networks
        return True

    def _give(self, node: Object, client: EngineClient) -> None:
        networks = self._held.get(node.name) or self._allocate(node)
        self._held[node.name] = networks
        texts = [str(each) for each in networks]
        client.patch(node, {"metadata": {"uid": node.uid}, "spec": {"podCIDR": texts[0], "podCIDRs": texts}})

    def _allocate(self, node: Object) -> list[Network]:
        found: list[Network] = []
        for pool in self._pools:
            network = pool.allocate()
            if network is None:
                self._release(found)
                subject = ObjectReference("Node", name=node.name, uid=node.name, api_version="v1")
                self._recorder.event(
                    subject, NORMAL, "CIDRNotAvailable", f"Node {node.name} status is now: CIDRNotAvailable"
                )
                raise NoRange(f"no range of {pool.pool} is left for node {node.name}")
            found.append(network)
        return found

    def _occupy(self, network: Network) -> None:
        for pool in self._pools:
            pool.occupy(network)

    def _release(self, networks: Sequence[Network]) -> None:
        for network in networks:
            for pool in self._pools:
                pool.release(network)


class _Idle:
    """The reconciler that is used if the allocation of node ranges is disabled."""

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Do nothing; this method is never called, because the controller has no watches."""


def node_keys(change: Change) -> Iterator[Key]:
    """Yield the key of a node that was created or deleted, or whose ranges changed."""
    if change.new is None or change.old is None or _decode_node(change.new.body) != _decode_node(change.old.body):
        yield change.object.key


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options.

    If `allocate_node_cidrs` is not set, the controller does nothing.
    """
    if not options.allocate_node_cidrs or options.cidr_allocator_type != "RangeAllocator":
        return assemble(DESCRIPTOR, context, _Idle())
    nodes, service_cidrs = context.informers.informer(NODES), context.informers.informer(SERVICE_CIDRS)
    reconciler = NodeIpam(nodes.lister, service_cidrs.lister, _pools(options), context.recorder(DESCRIPTOR))
    return assemble(DESCRIPTOR, context, reconciler, [Watch(nodes, node_keys)])


def _pools(options: Options) -> list[Pool]:
    ipv4, ipv6 = options.node_cidr_mask_size_ipv4, options.node_cidr_mask_size_ipv6
    return pools(options.cluster_cidr, options.node_cidr_mask_size, ipv4, ipv6)

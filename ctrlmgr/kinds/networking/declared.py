"""The declarations of the kinds of `networking.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.kinds.networking import printers
from ctrlmgr.kinds.networking.ingress import IngressStrategy
from ctrlmgr.kinds.networking.ingress_class import IngressClassStrategy
from ctrlmgr.kinds.networking.ip_address import IPAddressStrategy
from ctrlmgr.kinds.networking.network_policy import NetworkPolicyStrategy
from ctrlmgr.kinds.networking.service_cidr import ServiceCIDRStrategy

_V1 = "networking.k8s.io/v1"

KINDS = (
    Declaration(_V1, "IPAddress", strategy=IPAddressStrategy(), printer=printers.IP_ADDRESS),
    Declaration(
        _V1,
        "Ingress",
        strategy=IngressStrategy(),
        printer=printers.INGRESS,
        registry_path="ingress",
        unused="no traffic is routed; as in Kubernetes, you can run an ingress controller that routes it",
    ),
    Declaration(_V1, "IngressClass", strategy=IngressClassStrategy(), printer=printers.INGRESS_CLASS),
    Declaration(
        _V1,
        "NetworkPolicy",
        strategy=NetworkPolicyStrategy(),
        printer=printers.NETWORK_POLICY,
        unused="no traffic is restricted: simulated nodes have no network",
    ),
    Declaration(_V1, "ServiceCIDR", strategy=ServiceCIDRStrategy(), printer=printers.SERVICE_CIDR),
)

"""Forwards requests for resources that this server does not serve to serving processes of the same log that do.

Peers exist while a control plane is updated, or if processes of one control plane have different flags or apps.
Identity Leases contain the addresses of all peers (`peer_servers`), their discovery documents what they serve
(`peer_discovery`). `peer_proxy` forwards requests, and `merged_groups` adds the peers' groups to discovery.

Source: apiserver `pkg/util/peerproxy`, KEP-4020.
"""

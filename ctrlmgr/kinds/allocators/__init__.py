"""Allocates ClusterIPs and node ports of Services.

`service_ranges` describes the available values, and `search` finds a free value. `allocation_claims` are the objects in
the log that record the owner of each value. The name of a claim is the address or port, and the log refuses to add an
object that exists. Therefore each value has only one owner. A claim is added in the same append as its Service.
"""

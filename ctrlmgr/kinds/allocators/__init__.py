"""Allocates ClusterIPs and node ports of Services.

`service_ranges` describes the available values, `search` finds a free one, and `allocation_claims` are the objects in
the log that record the owner of each value. The log guarantees that each value has only one owner. A claim is ADDED in
the same append as its Service, its name is the address or port, and the log refuses to add an existing object.
"""

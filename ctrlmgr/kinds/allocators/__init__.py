"""Allocates ClusterIPs and node ports of Services.

`service_ranges` describes the available values, and `search` finds a free value. The module `allocation_claims` defines
the claims, which are objects in the log that record the owner of each value. The name of a claim object is the address
or port, and the log refuses to create an object that exists already. Therefore each address or port has only one owner.
The log commits a claim and its Service together.
"""

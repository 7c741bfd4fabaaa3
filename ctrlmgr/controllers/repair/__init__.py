"""Checks the allocations of ClusterIPs and node ports against the Services, and corrects them."""

"""Publishes each serving process as an identity Lease, and deletes the Leases of processes that no longer run."""

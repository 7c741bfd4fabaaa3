"""The controllers of ReplicaSets and ReplicationControllers: as many pods as wanted, all the time."""

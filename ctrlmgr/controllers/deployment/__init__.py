"""The deployment controller: rolls a template out, one ReplicaSet giving way to the next."""

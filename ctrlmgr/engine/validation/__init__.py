"""What values may be, in Kubernetes' words: the checks that more than one kind needs. No I/O here, no state."""

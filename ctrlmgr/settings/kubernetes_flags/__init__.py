"""The meanings of the flags of Kubernetes' programs that have no setting of their own."""

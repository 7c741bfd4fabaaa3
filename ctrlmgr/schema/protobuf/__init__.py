"""Reads and writes Kubernetes' protobuf format by the published structure of its messages."""

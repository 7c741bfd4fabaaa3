"""Kubernetes' protobuf format, which is read and written by the published structure of the messages."""

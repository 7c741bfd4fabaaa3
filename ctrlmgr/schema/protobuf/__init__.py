"""Kubernetes' protobuf format, read and written from the published message structure."""

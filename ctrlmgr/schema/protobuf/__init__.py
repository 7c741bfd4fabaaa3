"""Kubernetes' protobuf form, read and written from the published message structure."""

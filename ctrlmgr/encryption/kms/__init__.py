"""Encrypts data keys with a key management service (KMS), over its gRPC API v2."""

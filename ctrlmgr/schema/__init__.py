"""Describes the structure of request bodies by schemas, and decodes and encodes bodies in JSON, YAML and protobuf."""

"""Schemas and codecs: the structure of bodies, and reading and writing JSON, YAML and protobuf."""

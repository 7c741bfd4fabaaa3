"""Schemas and codecs: the structure of bodies, and functions that read and write JSON, YAML and protobuf."""

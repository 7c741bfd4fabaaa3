"""Schemas and codecs: what a body may look like, and how JSON, YAML and protobuf are read and written."""

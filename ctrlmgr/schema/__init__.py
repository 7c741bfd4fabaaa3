"""Schemas describe the structure of request bodies; codecs read and write JSON, YAML and protobuf."""

"""Publishes in which versions this server encodes and decodes each resource, as StorageVersions."""

"""Serves documents about the server and its kinds: discovery, OpenAPI and the version."""

"""API objects: names, metadata, bodies, and typed views of the core kinds. The package `api` does no I/O."""

"""API objects: names, metadata, bodies, and typed views of the core kinds. This package does no I/O."""

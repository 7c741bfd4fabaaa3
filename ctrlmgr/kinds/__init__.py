"""Declares Kubernetes' built-in kinds.

Each group has a package, whose module `declared` lists the kinds with their strategies and columns.

The module `builtin` creates the registry that contains all built-in kinds.

`builtin` creates the registry that contains all built-in kinds.
"""

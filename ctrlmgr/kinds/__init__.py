"""The built-in kinds: one package for each group, whose `declared` lists its kinds with their strategies and columns.

`builtin` creates the registry of all built-in kinds.
"""

"""The built-in kinds, in one package for each group, whose `declared` lists kinds with strategies and columns.

`builtin` creates the registry that contains all built-in kinds.
"""

"""The built-in kinds: a package a group, whose `declared` says what the project knows of each of its kinds.

`builtin` makes the registry of them all.
"""

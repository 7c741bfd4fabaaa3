"""Applies a structural schema to a decoded value: pruning, nulls, defaults, embedded metadata."""

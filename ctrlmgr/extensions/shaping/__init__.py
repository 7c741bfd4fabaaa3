"""Applies a structural schema to a decoded value: prunes, removes nulls, sets defaults, converts embedded metadata."""

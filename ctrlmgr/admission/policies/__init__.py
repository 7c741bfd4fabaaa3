"""Admission policies: CEL rules about writes, and their bindings."""

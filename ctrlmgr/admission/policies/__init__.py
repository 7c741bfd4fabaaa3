"""Admission policies, which check or change writes with CEL expressions, and the bindings of policies."""

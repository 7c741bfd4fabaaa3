"""Admission policies, which check or change writes by CEL expressions, and the bindings of policies."""

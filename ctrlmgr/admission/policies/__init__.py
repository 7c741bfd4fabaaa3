"""Admission policies: rules about writes that are written as expressions, and their bindings."""

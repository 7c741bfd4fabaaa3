"""Paths in definitions: JSONPath for columns and selectors, paths of scale subresources, of fields in schemas."""

"""Paths in definitions: JSONPath of columns and selectable fields, paths of scale subresources, paths in schemas."""

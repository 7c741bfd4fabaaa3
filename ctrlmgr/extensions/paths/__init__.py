"""Paths in CustomResourceDefinitions: JSONPath of columns and selectable fields, and paths of scales and in schemas."""

"""Paths that are not resources: health, metrics, debugging."""

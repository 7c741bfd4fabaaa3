"""Serves the paths that are not resources: health, metrics, debugging."""

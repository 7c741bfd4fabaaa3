"""Serves the URL paths that are not resources: health, metrics, debugging."""

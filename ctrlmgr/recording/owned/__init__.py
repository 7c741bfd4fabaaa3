"""Decides which recorded objects belong to a controller, and compares them with our controllers' objects."""

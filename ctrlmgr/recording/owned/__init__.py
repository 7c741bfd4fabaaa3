"""Decides which recorded objects belong to a controller, and compares these with our controllers' objects."""

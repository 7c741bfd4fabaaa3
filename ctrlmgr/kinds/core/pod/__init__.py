"""The kind Pod: its defaults, validation, allowed updates and subresources."""

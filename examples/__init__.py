"""Examples: short operators, and files that run the control plane as a service."""

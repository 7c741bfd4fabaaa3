"""Examples: operators on a screen, and how to run the control plane as a service."""

"""Measures connections to kubelets: `python -m bench.tunnel`."""
